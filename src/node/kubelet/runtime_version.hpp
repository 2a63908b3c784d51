// SPDX-License-Identifier: Apache-2.0
// Asks the container engine of the kubelet for its name and version (CRI, runtime.v1 Version), and
// says whether it understands CDI names in a device plugin's answer without further configuration.
#pragma once

#include "base/core/result.hpp"
#include "net/grpc/client.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace gantry::kubelet {

inline constexpr std::string_view kRuntimeVersion = "/runtime.v1.RuntimeService/Version";

struct RuntimeVersion {
  std::string name;     // "containerd", "cri-o"
  std::string version;  // "v2.0.1", "1.6.20~ds1"
  bool operator==(const RuntimeVersion&) const = default;
};

std::string encode(const RuntimeVersion& version);
Result<RuntimeVersion> decode_runtime_version(std::string_view bytes);

// True for containerd from 2.0 (in 1.7 it is off by default) and CRI-O from 1.28 (before, it reads
// CDI annotations only). False for unknown engines.
bool supports_cdi_names(const RuntimeVersion& runtime);

// Blocks for at most `deadline`.
Result<RuntimeVersion> query_runtime_version(const std::string& socket,
                                             std::chrono::milliseconds deadline);
// The same, in a loop.
void query_runtime_version(grpc::Client& client, std::chrono::milliseconds deadline,
                           std::function<void(const Result<RuntimeVersion>& version)> callback);

}  // namespace gantry::kubelet
