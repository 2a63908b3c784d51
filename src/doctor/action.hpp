// SPDX-License-Identifier: Apache-2.0
// A change that a remedy makes, as a value.
#pragma once

#include "base/result.hpp"
#include "sys/kernel.hpp"

#include <string>
#include <variant>
#include <vector>

namespace gantry::doctor {

struct MakeNode {
  std::string path;
  sys::FileInfo node;
};
struct MakeDirectory {
  std::string path;
};
struct MakeSymlink {
  std::string path;
  std::string target;
};
struct SetMode {
  std::string path;
  unsigned mode = 0;
};
struct LoadModule {
  std::string name;
};
struct WriteValue {
  std::string path;
  std::string value;
};
struct RunProgram {
  std::vector<std::string> argv;
};

using Action =
    std::variant<MakeNode, MakeDirectory, MakeSymlink, SetMode, LoadModule, WriteValue, RunProgram>;

// As a person would type it: "mknod -m 0666 /dev/nvidia0 c 195 0".
std::string describe(const Action& action);

// Below a root that is not "/", programs run in a chroot: a tree's remedy never touches this
// machine.
Status apply(const Action& action, const sys::Host& host, sys::Kernel& kernel);

}  // namespace gantry::doctor
