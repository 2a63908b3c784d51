// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "net/kube/client_config.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace gantry::kube {

Result<std::string> read_file(const std::string& path);

// The parser without file access, for tests and fuzzing: `read` returns the files that it names.
using ReadFile = std::function<Result<std::string>(const std::string&)>;
Result<ClientConfig> parse_kubeconfig(std::string_view text, std::string_view path,
                                      std::string_view context, const ReadFile& read);

}  // namespace gantry::kube
