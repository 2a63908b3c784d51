// SPDX-License-Identifier: Apache-2.0
// Records the changes instead of making them.
#pragma once

#include "base/sys/kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <string>
#include <vector>

namespace gantry::test {

class RecordingKernel final : public sys::Kernel {
 public:
  bool is_this_machine(const sys::Host&) override { return this_machine; }
  Status make_char_device(const sys::Host&, const std::string& path,
                          const sys::FileInfo& n) override {
    return note(
        fmt::format("mknod {} c {} {} {:04o} {} {}", path, n.major, n.minor, n.mode, n.uid, n.gid));
  }
  Status set_mode(const sys::Host&, const std::string& path, unsigned mode) override {
    return note(fmt::format("chmod {:04o} {}", mode, path));
  }
  Status make_directory(const sys::Host&, const std::string& path) override {
    return note(fmt::format("mkdir {}", path));
  }
  Status make_symlink(const sys::Host&, const std::string& path,
                      const std::string& target) override {
    return note(fmt::format("symlink {} -> {}", path, target));
  }
  Status load_module(const sys::Host&, const std::string& name) override {
    return note(fmt::format("modprobe {}", name));
  }
  Status write_value(const sys::Host&, const std::string& path, const std::string& value) override {
    return note(fmt::format("write {} {}", path, value));
  }
  Status write_file(const sys::Host&, const std::string& path,
                    const std::string& content) override {
    files[path] = content;
    return note(fmt::format("file {}", path));
  }
  Status remove_file(const sys::Host&, const std::string& path) override {
    return note(fmt::format("rm {}", path));
  }
  Status run(const sys::Host&, const std::vector<std::string>& argv,
             std::chrono::seconds) override {
    return note(fmt::format("run {}", fmt::join(argv, " ")));
  }

  std::vector<std::string> done;
  std::map<std::string, std::string> files;  // what write_file was given
  bool this_machine = true;
  bool fail = false;  // every action is refused from now on

 private:
  Status note(std::string what) {
    if (fail) return Error(Errc::Denied, what + ": refused");
    done.push_back(std::move(what));
    return {};
  }
};

}  // namespace gantry::test
