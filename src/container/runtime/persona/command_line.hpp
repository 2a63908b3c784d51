// SPDX-License-Identifier: Apache-2.0
// The command line that an engine passes to its OCI runtime, parsed like runc and crun do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {

struct CommandLine {
  std::string command;  // "create", "state", ...; "" if there is none
  std::string id;       // the container; "" if not given
  std::string bundle;   // "": the working directory; the last one given counts
  std::string config;   // crun's --config; "": config.json in the bundle
  std::string root;     // --root: where the low-level runtime keeps its state
  std::string log;      // --log
  std::string log_format = "text";
  bool version = false;  // --version before any command
  bool help = false;     // --help after the command: the low-level runtime prints it and ends

  // Returns true if the command reads a container's config.json.
  bool creates() const { return !help && (command == "create" || command == "run"); }
  bool operator==(const CommandLine&) const = default;
};

// `arguments` without argv[0]. Never fails: an unknown flag counts as a flag without a value, and
// the low-level runtime reports errors.
CommandLine parse_command_line(const std::vector<std::string_view>& arguments);

}  // namespace gantry::runtime
