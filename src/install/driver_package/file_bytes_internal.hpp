// SPDX-License-Identifier: Apache-2.0
// Reads large files piece by piece.
#pragma once

#include "base/core/result.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace gantry::driver_package {

// The first bytes of the file, at most `limit`.
Result<std::string> read_prefix(int fd, std::size_t limit, std::string_view shown);

// The file from the beginning to its end; the position of the descriptor does not change.
Status for_each_piece(int fd, std::string_view shown,
                      const std::function<void(std::string_view)>& piece);

}  // namespace gantry::driver_package
