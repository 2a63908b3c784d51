// SPDX-License-Identifier: Apache-2.0
// What no directory tree can fake: the narrow door to changes of the running system. The real one
// is real_kernel(); tests hand in a recorder (tests/support/recording_kernel.hpp).
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gantry::sys {

class Kernel {
 public:
  virtual ~Kernel() = default;

  // Whether the tree is the machine that we run on, seen from "/" or, in a pod, from "/host". Of no
  // other tree may a program be run: chroot keeps nothing away from this machine.
  virtual bool is_this_machine(const Host& host) = 0;

  // A character device node, made under a temporary name and renamed; replaces a wrong one.
  virtual Status make_char_device(const Host& host, const std::string& path,
                                  const FileInfo& node) = 0;
  virtual Status set_mode(const Host& host, const std::string& path, unsigned mode) = 0;
  // Missing parents too. A directory that is already there is fine.
  virtual Status make_directory(const Host& host, const std::string& path) = 0;
  // Replaces what is at `path`, unless that is a directory.
  virtual Status make_symlink(const Host& host, const std::string& path,
                              const std::string& target) = 0;
  // By the host's own modprobe. Denied unless is_this_machine.
  virtual Status load_module(const Host& host, const std::string& name) = 0;
  // One write() of a /proc or /sys value. Nothing is created.
  virtual Status write_value(const Host& host, const std::string& path,
                             const std::string& value) = 0;
  // A whole file of configuration, by rename; missing directories are made. A file that was there
  // keeps its mode and owner, a symlink is followed inside the root.
  virtual Status write_file(const Host& host, const std::string& path,
                            const std::string& content) = 0;
  // A file, node or symlink; no directory.
  virtual Status remove_file(const Host& host, const std::string& path) = 0;
  // Anything else that a remedy needs (systemctl, nvidia-smi), from the host; argv, no shell.
  // Denied unless is_this_machine; Timeout, and the program is killed, after the deadline.
  virtual Status run(const Host& host, const std::vector<std::string>& argv,
                     std::chrono::seconds deadline) = 0;
};

std::unique_ptr<Kernel> real_kernel();

}  // namespace gantry::sys
