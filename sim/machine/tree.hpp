// SPDX-License-Identifier: Apache-2.0
// Creates the whole host tree of a simulated machine: /proc, /sys, /dev, the driver's files.
#pragma once

#include "base/core/result.hpp"
#include "sim/machine/machine.hpp"
#include "sim/machine/tree_writer.hpp"

#include <string>
#include <vector>

namespace gantry::sim {

enum class ExistingTree : std::uint8_t { Keep, ReplaceOurs };

struct CreateOptions {
  std::string root;
  // Directory with the simulated libcuda.so, libnvidia-ml.so and nvidia-smi; "" installs empty
  // libraries that contain the machine but implement nothing, for tests that only read the tree.
  std::string libraries;
  DeviceNodes nodes = DeviceNodes::Auto;
  ExistingTree existing = ExistingTree::Keep;
};

struct CreatedTree {
  std::string root;  // absolute
  DeviceNodes nodes = DeviceNodes::Table;
  std::vector<std::string> notes;  // differences from a real machine, and why
};

// Builds the tree in a temporary directory next to `root` and renames it, so `root` is complete or
// absent. An existing directory must be empty or, if the options allow it, a tree made by create.
Result<CreatedTree> create(const Machine& machine, const CreateOptions& options);

// Removes a tree that create() made. NotFound if it is not one, Busy if something is mounted in it.
Status remove(const std::string& root);

// The directory of the simulated libraries: `given`, else $GANTRY_SIM_LIBRARIES, else that of this
// program.
Result<std::string> find_libraries(const std::string& given);

// The file /.gantry-sim that create writes into the tree.
struct TreeMarker {
  std::string machine;
  std::string cuda_library;  // paths inside the tree
  std::string nvml_library;
  std::string binary_directory;
  std::string healthy = {};  // the machine to create instead of one that is made broken
};
inline constexpr std::string_view kMarkerPath = "/.gantry-sim";
std::string to_string(const TreeMarker& marker);
Result<TreeMarker> read_marker(const std::string& root);

}  // namespace gantry::sim
