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
  std::vector<std::string> ignored_values;  // values of flags that have no effect here
  bool no_all_device = false;
  bool firmware = false;
};

void add_spec_flags(CLI::App& command, SpecFlags& flags);

// Opens the machine that the flags name. If --driver-root holds a whole machine, it is the same as
// --root. If it holds only the driver's files, they belong to the machine of --root.
struct SpecMachine {
  sys::Host host;
  driver::DriverLocation driver;
};
Result<SpecMachine> open_machine(const SpecFlags& flags, const Context& context);

// Parses the flags; an error names the flag. The machine decides the default of the engine's root.
Result<publish::SpecOptions> spec_options(const SpecFlags& flags, const SpecMachine& machine);

// Splits a path of the command line, which is as the caller sees it. If it is below the machine's
// root, it belongs to that machine and is checked against the machine's other specifications.
// Otherwise it belongs to the machine that runs this program.
struct SpecLocation {
  std::optional<sys::Host> host;  // nullopt: the machine itself
  std::string path;
};
Result<SpecLocation> locate_spec(const std::string& file, const sys::Host& machine);

void add_take_over(CLI::App& command, bool& take_over);

// Prints "Note: ..." lines on stderr, unless quiet.
void print_notes(const std::vector<std::string>& notes, const Context& context);

}  // namespace gantry::cli
