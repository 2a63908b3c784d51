// SPDX-License-Identifier: Apache-2.0
// The effects on a real machine: this one, or the one below /host of a pod.
#pragma once

#include "install/driver_package/download.hpp"
#include "install/driver_setup/install_effects.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace gantry::driver_setup {

// A directory of the machine, as this process sees it, that a program gets to see under `path`.
struct ShownPath {
  std::string from;
  std::string path;
  bool operator==(const ShownPath&) const = default;
};

// What has to be shown to a program of our image. Empty where the machine's root is our own.
std::vector<ShownPath> paths_to_show(const sys::Host& host, const ProgramCall& call);

// To run between fork and exec: shows the directories in a mount namespace of that program alone.
// Makes those that do not exist yet in our image at once; an error says why that failed.
Result<std::function<bool()>> show_paths(const std::vector<ShownPath>& paths);

struct LiveOptions {
  std::function<Status()> refresh_cdi;
  std::function<Status()> remove_cdi;
  std::function<Status()> tell_agent;
  driver_package::DownloadProgress* progress = nullptr;  // nullptr: it is not shown
};

// Denied if the tree is not the machine that runs: its kernel would not get the modules. The host
// must outlive the result.
Result<std::unique_ptr<InstallEffects>> live_effects(const sys::Host& host, LiveOptions options);

// Where a program of ProgramPlace::Tools or Image runs.
enum class ToolPlace : std::uint8_t {
  Machine,  // it has all that the call needs
  Here      // our own image, with the machine's files below the root
};
ToolPlace place_of_tools(const sys::Host& host, const ProgramCall& call);

// The words of a call for a place. Here, a path means the machine's file: it is used as it is where
// the image shows the same file under the same path, as with a mount of /usr/src.
std::vector<std::string> words_for(const sys::Host& host, const ProgramCall& call, ToolPlace place);

// What programs that run as root get of our environment, which may be an ordinary user's: a PATH
// that begins with the system's directories, English messages, and of the rest only what reaches a
// proxy or a signing key. make, cc, sh, tar and apt take commands and libraries from many others.
std::vector<std::string> environment_for_programs(const char* const* ours);

}  // namespace gantry::driver_setup
