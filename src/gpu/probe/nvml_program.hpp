// SPDX-License-Identifier: Apache-2.0
// gantry-nvml: the program that loads NVIDIA's library, because gantry itself is static and cannot.
//   gantry-nvml view  PROTOCOL ROOT LD_CACHE PARTS         DRIVER_ROOT LIBRARIES...
//   gantry-nvml watch PROTOCOL ROOT LD_CACHE EVENT_WAIT_MS DRIVER_ROOT LIBRARIES...
//   gantry-nvml mig   PROTOCOL ROOT LD_CACHE ""            DRIVER_ROOT LIBRARIES...
// `view` writes one NvmlView to descriptor 3, a pipe. `watch` exchanges messages over descriptor 3,
// a socket (nvml_child/wire.hpp). `mig` reads requests from descriptor 3, a socket, and answers
// there (mig_nvml/messages.hpp): a library of the vendor may print to standard output.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"
#include "gpu/driver/root.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::probe {

inline constexpr std::string_view kNvmlProgram = "gantry-nvml";
inline constexpr std::string_view kViewCommand = "view";
inline constexpr std::string_view kWatchCommand = "watch";
inline constexpr std::string_view kMigCommand = "mig";
// Increase it with every change of the arguments or of a message: during an upgrade the two
// programs can have different versions.
inline constexpr std::string_view kNvmlProtocol = "2";

// The arguments after PROTOCOL; `fourth` is PARTS, EVENT_WAIT_MS or "".
std::vector<std::string> nvml_arguments(const sys::Host& host, const std::string& ld_cache,
                                        std::string fourth, const driver::DriverLocation& driver);

struct NvmlProgram {
  std::string path;
  sys::UniqueFd file;  // what was checked, and is to be run: another file may get the path
};

// gantry-nvml in a directory. Denied if a user other than root, ourselves or the owner of the
// running program could change the file or its directory, or if a link leads to another program.
Result<NvmlProgram> find_nvml_program(const std::string& directory);

struct NvmlCommand {
  std::vector<std::string> argv;  // PATH COMMAND PROTOCOL
  sys::UniqueFd program;          // for sys::spawn
};

// The program in ../lib/gantry beside the running program.
Result<NvmlCommand> nvml_command(std::string_view command);

// Why the program at `path` did not start, with what the user can do.
Error nvml_not_started(const Error& cause, const std::string& path);

}  // namespace gantry::probe
