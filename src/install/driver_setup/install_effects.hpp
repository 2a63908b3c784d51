// SPDX-License-Identifier: Apache-2.0
// Everything by which an installation changes a machine or runs a program. All paths are inside the
// machine's root. Each call is a fault point: tests end the program before and after every one of
// them, so no other code of this module may change anything.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "install/driver_package/download.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_setup {

// One word of a command: text, a path inside the machine's root, or both ("SYSSRC=" and a path).
struct CommandWord {
  std::string text;
  std::string path{};
  bool operator==(const CommandWord&) const = default;
};

enum class ProgramPlace : std::uint8_t {
  Machine,  // a program of the machine: ldconfig, systemctl, apt-get, nvidia-smi
  Tools,    // sh, make, gcc: the machine's if it has all that are needed, else those of our image
  Image     // those of our image
};

struct ProgramCall {
  std::vector<CommandWord> words;
  ProgramPlace place = ProgramPlace::Machine;
  std::vector<std::string> needs{};  // Tools: the programs that must be in one place
  std::chrono::seconds deadline{60};
  std::vector<int> good{};  // exit statuses besides 0 that are no failure
  // Tools: directories of the machine that a program of our image finds under the machine's own
  // paths, because files in them name each other so.
  std::vector<std::string> shows{};
};

// "make -C /usr/local/nvidia/... modules", with paths as they are inside the root.
std::string to_text(const ProgramCall& call);

class InstallEffects {
 public:
  virtual ~InstallEffects() = default;

  // Files. A crash leaves the old content or the new one.
  virtual Status save(const std::string& path, std::string_view content, unsigned mode) = 0;
  // One regular file; both may share their content afterwards. Not durable before sync().
  virtual Status copy(const std::string& from, const std::string& to, unsigned mode) = 0;
  virtual Status make_directory(const std::string& path) = 0;  // and its parents
  virtual Status make_link(const std::string& path, const std::string& target) = 0;  // replaces
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& path) = 0;            // succeeds if there is none
  virtual Status remove_directory(const std::string& path) = 0;  // if it is empty; else it stays
  virtual Status remove_tree(const std::string& path) = 0;       // succeeds if there is none
  virtual Status sync(const std::string& path) = 0;  // the file system with all that was written

  // The kernel.
  virtual Status load_module(const std::string& path, const std::string& options) = 0;
  virtual Status unload_module(const std::string& name) = 0;
  virtual Status write_value(const std::string& path, const std::string& value) = 0;
  virtual Status make_node(const std::string& path, const sys::FileInfo& node) = 0;

  // Programs. The output on exit status 0 or another good one, else an error with the end of the
  // output.
  virtual Result<std::string> run(const ProgramCall& call) = 0;
  virtual Result<driver_package::Downloaded> download(
      const driver_package::DownloadRequest& request) = 0;
  virtual Status terminate(std::uint32_t pid) = 0;  // SIGTERM; succeeds if it has gone

  // Gantry's own files and its agent.
  virtual Status refresh_cdi() = 0;  // what containers need of the driver that is loaded now
  virtual Status remove_cdi() = 0;   // what an earlier refresh_cdi() wrote
  virtual Status tell_agent() = 0;   // that the driver changed; succeeds without an agent

  virtual void pause(std::chrono::milliseconds time) = 0;
};

}  // namespace gantry::driver_setup
