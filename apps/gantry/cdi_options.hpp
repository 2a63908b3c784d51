// SPDX-License-Identifier: Apache-2.0
// The flags that `cdi generate` and `cdi refresh` share, with NVIDIA's names and environment.
#pragma once

#include "container/publish/generate_spec.hpp"
#include "gantry/command.hpp"
#include "gpu/driver/root.hpp"

#include <optional>
#include <string>
#include <vector>

namespace gantry::cli {

struct SpecFlags {
  std::string mode = "auto";
  std::string flavour = "no-hooks";
  std::string capabilities = "compute,utility,video,graphics,display,ngx";
  std::string engine_root;
  std::string driver_root;
  std::string dev_root;
  std::string vendor;
  std::string class_name;
  std::string hook_path;
  std::string gids = "auto";
  std::string target_version;
  std::vector<std::string> names{"index", "uuid"};
  std::vector<std::string> devices;
  std::vector<std::string> features;
  std::vector<std::string> disabled_hooks;
  std::vector<std::string> enabled_hooks;
  std::vector<std::string> library_directories;
  std::vector<std::string> ignored_values;  // values of flags that change nothing here
  bool no_all_device = false;
  bool firmware = false;
};

void add_spec_flags(CLI::App& command, SpecFlags& flags);

// The machine that the flags are about. --driver-root is NVIDIA's word for its root where there is
// a machine below it; a tree that has only the driver's files is that of the machine of --root.
struct SpecMachine {
  sys::Host host;
  driver::DriverLocation driver;
};
Result<SpecMachine> open_machine(const SpecFlags& flags, const Context& context);

// The flags as values; errors name the flag. The machine decides about the engine's root.
Result<publish::SpecOptions> spec_options(const SpecFlags& flags, const SpecMachine& machine);

// A file of the command line, which is where the caller sees it: below the machine's root it is
// that machine's, and the specifications there count; elsewhere it is this one's.
struct SpecLocation {
  std::optional<sys::Host> host;  // nullopt: the machine itself
  std::string path;
};
Result<SpecLocation> locate_spec(const std::string& file, const sys::Host& machine);

void add_take_over(CLI::App& command, bool& take_over);

// "Note: ..." lines on stderr, unless quiet.
void print_notes(const std::vector<std::string>& notes, const Context& context);

}  // namespace gantry::cli
