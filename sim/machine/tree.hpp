// SPDX-License-Identifier: Apache-2.0
// A whole host tree of a machine that does not exist: /proc, /sys, /dev, the driver's files.
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
  // libraries that carry the machine but answer nothing, for tests that only read the tree.
  std::string libraries;
  DeviceNodes nodes = DeviceNodes::Auto;
  ExistingTree existing = ExistingTree::Keep;
};

struct CreatedTree {
  std::string root;  // absolute
  DeviceNodes nodes = DeviceNodes::Table;
  std::vector<std::string> notes;  // what is not quite like the real thing, and why
};

// Builds beside `root` and renames: the tree is there whole or not at all. A directory that exists
// is taken when it is empty; a tree made by create is replaced if asked; anything else is refused.
Result<CreatedTree> create(const Machine& machine, const CreateOptions& options);

// Where the simulated libraries are: `given`, else $GANTRY_SIM_LIBRARIES, else beside this program.
Result<std::string> find_libraries(const std::string& given);

// What create leaves at /.gantry-sim in the tree.
struct TreeMarker {
  std::string machine;
  std::string cuda_library;  // paths inside the tree
  std::string nvml_library;
  std::string binary_directory;
};
inline constexpr std::string_view kMarkerPath = "/.gantry-sim";
std::string to_string(const TreeMarker& marker);
Result<TreeMarker> read_marker(const std::string& root);

}  // namespace gantry::sim
