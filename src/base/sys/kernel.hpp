// SPDX-License-Identifier: Apache-2.0
// Interface for changes of the running system that a directory tree cannot simulate. real_kernel()
// is the real implementation; tests pass a recorder (tests/support/recording_kernel.hpp).
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::sys {

class Kernel {
 public:
  virtual ~Kernel() = default;

  // Whether the tree is the machine that we run on, seen from "/" or, in a pod, from "/host". Never
  // run a program from another tree: chroot does not protect this machine from it.
  virtual bool is_this_machine(const Host& host) = 0;

  // Creates a character device node under a temporary name and renames it; replaces a wrong one.
  virtual Status make_char_device(const Host& host, const std::string& path,
                                  const FileInfo& node) = 0;
  virtual Status set_mode(const Host& host, const std::string& path, unsigned mode) = 0;
  // Also creates missing parents. Succeeds if the directory exists.
  virtual Status make_directory(const Host& host, const std::string& path) = 0;
  // Replaces any existing file at `path` except a directory.
  virtual Status make_symlink(const Host& host, const std::string& path,
                              const std::string& target) = 0;
  // Runs the host's modprobe. Denied unless is_this_machine.
  virtual Status load_module(const Host& host, const std::string& name) = 0;
  // One write() of a /proc or /sys value. Nothing is created.
  virtual Status write_value(const Host& host, const std::string& path,
                             const std::string& value) = 0;
  // Replaces a whole configuration file by rename and creates missing directories. An existing file
  // keeps its mode and owner; a symlink is followed inside the root.
  virtual Status write_file(const Host& host, const std::string& path,
                            const std::string& content) = 0;
  // Removes a file, node or symlink, but not a directory.
  virtual Status remove_file(const Host& host, const std::string& path) = 0;
  // Runs a program of the host that a remedy needs (systemctl, nvidia-smi), without a shell. Denied
  // unless is_this_machine. After the deadline it kills the program and returns Timeout.
  virtual Status run(const Host& host, const std::vector<std::string>& argv,
                     std::chrono::seconds deadline) = 0;
};

std::unique_ptr<Kernel> real_kernel();

// What is written first and renamed then: "/a/.b.gantry" of "/a/b", ".b.gantry" of "b". The name is
// always the same, so a writer that was killed leaves one file, which the next writer replaces.
std::string temporary_of(std::string_view path);

}  // namespace gantry::sys
