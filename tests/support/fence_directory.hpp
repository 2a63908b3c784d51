// SPDX-License-Identifier: Apache-2.0
// A directory that replaces /run/gantry/fence: a copy of the fence in it looks there for the share
// daemon and the driver.
#pragma once

#include <string>
#include <string_view>

namespace gantry::test {

class FenceDirectory {
 public:
  FenceDirectory();
  ~FenceDirectory();
  FenceDirectory(FenceDirectory&& other) noexcept : directory_(std::move(other.directory_)) {
    other.directory_.clear();
  }
  FenceDirectory& operator=(FenceDirectory&&) = delete;

  const std::string& directory() const { return directory_; }
  std::string path(std::string_view name) const { return directory_ + "/" + std::string(name); }
  void link(std::string_view name, const std::string& file) const;  // the driver's own, a socket
  // The copy has the directory's name wherever the library has FENCE_DIRECTORY. Both have the same
  // length, so nothing else changes.
  std::string install(const std::string& library, std::string_view name) const;

 private:
  std::string directory_;
};

}  // namespace gantry::test
