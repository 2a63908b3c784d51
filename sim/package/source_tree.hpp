// SPDX-License-Identifier: Apache-2.0
// Gantry's source tree: a driver package contains source of it, which is not part of the program.
#pragma once

#include "base/core/result.hpp"
#include "sim/package/package_driver.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::sim {

// The directory of the tree: `given`, else the nearest one above this program. NotFound, with what
// is missing and what to do, if it is not there.
Result<std::string> find_source_tree(const std::string& given);

class SourceTree {
 public:
  explicit SourceTree(std::string directory) : directory_(std::move(directory)) {}

  Result<std::string> kernel_file(std::string_view name) const;  // of sim/kernel
  // Of sim/package/files, with @VERSION@ and its like replaced by what they are for this driver.
  Result<std::string> package_file(std::string_view name, const PackageDriver& driver) const;

 private:
  Result<std::string> read(std::string_view path) const;
  std::string directory_;
};

// Replaces every name by its value.
std::string fill_in(std::string text,
                    const std::vector<std::pair<std::string_view, std::string>>& values);

}  // namespace gantry::sim
