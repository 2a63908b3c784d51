// SPDX-License-Identifier: Apache-2.0
// The flags that `cdi generate` and `cdi refresh` share, with NVIDIA's names and environment.
#pragma once

#include "gantry/command.hpp"
#include "refresh/spec.hpp"

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
  std::vector<std::string> not_needed;  // values of flags that change nothing here
  bool no_all_device = false;
  bool firmware = false;
};

void add_spec_flags(CLI::App& command, SpecFlags& flags);

// --driver-root is NVIDIA's word for the machine's root.
void apply_driver_root(const SpecFlags& flags, Context& context);

// The flags as values; errors name the flag. `host` decides about the engine's root.
Result<refresh::SpecOptions> spec_options(const SpecFlags& flags, const sys::Host& host);

// "Note: ..." lines on stderr, unless quiet.
void print_notes(const std::vector<std::string>& notes, const Context& context);

}  // namespace gantry::cli
