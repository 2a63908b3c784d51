// SPDX-License-Identifier: Apache-2.0
// The part of the effects that is about files, on a machine or in a tree.
#pragma once

#include "base/sys/unique_fd.hpp"
#include "install/driver_setup/install_effects.hpp"

#include <string>
#include <string_view>

namespace gantry::driver_setup {

class HostFiles : public InstallEffects {
 public:
  // The host must outlive it.
  explicit HostFiles(const sys::Host& host) : host_(host) {}

  Status save(const std::string& path, std::string_view content, unsigned mode) override;
  Status copy(const std::string& from, const std::string& to, unsigned mode) override;
  Status make_directory(const std::string& path) override;
  Status make_link(const std::string& path, const std::string& target) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Status remove_tree(const std::string& path) override;
  Status sync(const std::string& path) override;

 protected:
  const sys::Host& host() const { return host_; }

 private:
  // A name in a directory that is open: links above the name are followed once, inside the root,
  // and somebody who exchanges a directory of the path meanwhile changes nothing.
  struct OpenPlace {
    sys::UniqueFd directory;
    std::string name;
    std::string shown;  // for messages
  };
  Result<OpenPlace> open_place(const std::string& path) const;

  const sys::Host& host_;
};

}  // namespace gantry::driver_setup
