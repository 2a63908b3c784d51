// SPDX-License-Identifier: Apache-2.0
// Files that keep the driver working after a reboot and after an update of the kernel: a unit that
// loads it, and hooks of dpkg, rpm and zypper that build its modules for a new kernel before that
// kernel runs.
#pragma once

#include "base/sys/host.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_setup {

inline constexpr std::string_view kDriverUnit = "gantry-driver.service";

struct BootFile {
  std::string path;
  std::string content;  // "" for a link
  std::string link;     // its target
  unsigned mode = 0644;
  bool operator==(const BootFile&) const = default;
};

// Those that suit the machine: the unit where systemd is, a hook where its package tool is.
// `program` is the path of gantry.
std::vector<BootFile> boot_files(const sys::Host& host, const std::string& program);

// The script of /etc/kernel/postinst.d, called with the release of the new kernel.
std::string dpkg_hook(std::string_view program);
// The same for the headers, which may be installed after the kernel, and for its removal.
std::string dpkg_removal_hook(std::string_view program);
// The script of /etc/kernel/install.d, called with `add` or `remove` and the release.
std::string kernel_install_hook(std::string_view program);
// A commit plugin of libzypp: SUSE's kernels call weak-modules2, dracut and the boot loader when
// they are installed, and no directory of hooks.
std::string zypp_plugin(std::string_view program);
std::string driver_unit(std::string_view program);

// Why a boot must not run this program as root: other users can change it, or it will be gone. ""
// if nothing is known against it.
std::string reason_against_program(const sys::Host& host, std::string_view program);

}  // namespace gantry::driver_setup
