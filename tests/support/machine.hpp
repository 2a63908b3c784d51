// SPDX-License-Identifier: Apache-2.0
// A simulated machine in a temporary directory: Machine m("h200x8"); look(m.host()).
#pragma once

#include "base/sys/host.hpp"

#include <string>
#include <string_view>

namespace gantry::test {

class Machine {
 public:
  // The tree has a dev.table instead of device nodes. If the simulated libraries are built, they
  // are installed; if not, the tree has empty libraries in their place.
  explicit Machine(std::string_view name);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const std::string& root() const { return root_; }
  std::string path(std::string_view inside) const { return root_ + std::string(inside); }
  sys::Host host() const;
  std::string cuda_library() const;  // "" if the machine has none

  // Changes for tests of broken machines.
  Machine& file(std::string_view inside, std::string_view content);
  Machine& link(std::string_view inside, std::string_view target);
  Machine& remove(std::string_view inside);
  // A line of dev.table: "/dev/nvidia0 c 195 0 0660 0 33"; replaces the node's line if it has one.
  Machine& node(std::string_view line);

  static bool has_libraries();  // are the simulated libraries there?

 private:
  std::string parent_;
  std::string root_;
};

}  // namespace gantry::test
