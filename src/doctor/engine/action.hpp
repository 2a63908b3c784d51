// SPDX-License-Identifier: Apache-2.0
// A change that a remedy makes, as a value.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/kernel.hpp"

#include <chrono>
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
struct WriteFile {
  std::string path;
  std::string content;  // the whole file
  std::string what;     // for people: "user = \"root:video\""
};
struct RemoveFile {
  std::string path;
};
struct RunProgram {
  std::vector<std::string> argv;
  std::chrono::seconds deadline{60};
};
constexpr std::chrono::seconds kBuildDeadline{600};  // compilers, package managers, an initramfs

using Action = std::variant<MakeNode, MakeDirectory, MakeSymlink, SetMode, LoadModule, WriteValue,
                            WriteFile, RemoveFile, RunProgram>;

// As a person would type it: "mknod -m 0666 /dev/nvidia0 c 195 0".
std::string describe(const Action& action);

// Returns true if the action runs a program of the machine. Such an action is only for the machine
// that we run on: we do not trust the programs of another tree, and a chroot does not confine a
// program that runs as root.
bool runs_a_program(const Action& action);

// The file or node that the action changes; "" for programs.
std::string target_of(const Action& action);

Status apply(const Action& action, const sys::Host& host, sys::Kernel& kernel);

}  // namespace gantry::doctor
