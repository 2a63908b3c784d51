// SPDX-License-Identifier: Apache-2.0
// What an engine asked of its OCI runtime, read from argv the way runc and crun read it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gantry::runtime {

struct CommandLine {
  std::string command;  // "create", "state", ...; "" when there is none
  std::string id;       // the container, "" when not given
  std::string bundle;   // "" means the working directory; the last one given wins
  std::string config;   // crun's --config; "" means config.json in the bundle
  std::string root;     // --root: where the low-level runtime keeps its state
  std::string log;      // --log
  std::string log_format = "text";
  bool version = false;  // --version before any command

  // Whether a container's config.json is about to be read.
  bool creates() const { return command == "create" || command == "run"; }
  bool operator==(const CommandLine&) const = default;
};

// `arguments` without argv[0]. Never fails: what it does not know is a flag without a value, and
// the low-level runtime will say what it thinks of it.
CommandLine parse_command_line(const std::vector<std::string_view>& arguments);

}  // namespace gantry::runtime
