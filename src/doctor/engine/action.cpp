// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/action.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gantry::doctor {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

std::string describe(const Action& action) {
  return std::visit(
      Overloaded{
          [](const MakeNode& a) {
            return fmt::format("mknod -m {:04o} {} c {} {}", a.node.mode, a.path, a.node.major,
                               a.node.minor);
          },
          [](const MakeDirectory& a) { return fmt::format("mkdir -p {}", a.path); },
          [](const MakeSymlink& a) { return fmt::format("ln -sfn {} {}", a.target, a.path); },
          [](const SetMode& a) { return fmt::format("chmod {:04o} {}", a.mode, a.path); },
          [](const LoadModule& a) { return fmt::format("modprobe {}", a.name); },
          [](const WriteValue& a) { return fmt::format("echo '{}' > {}", a.value, a.path); },
          [](const WriteFile& a) { return fmt::format("write {}: {}", a.path, a.what); },
          [](const RemoveFile& a) { return fmt::format("rm {}", a.path); },
          [](const RunProgram& a) { return fmt::format("{}", fmt::join(a.argv, " ")); },
      },
      action);
}

bool runs_a_program(const Action& action) {
  return std::holds_alternative<LoadModule>(action) || std::holds_alternative<RunProgram>(action);
}

std::string target_of(const Action& action) {
  return std::visit(Overloaded{
                        [](const LoadModule&) { return std::string(); },
                        [](const RunProgram&) { return std::string(); },
                        [](const auto& a) { return a.path; },
                    },
                    action);
}

Status apply(const Action& action, const sys::Host& host, sys::Kernel& kernel) {
  return std::visit(
      Overloaded{
          [&](const MakeNode& a) { return kernel.make_char_device(host, a.path, a.node); },
          [&](const MakeDirectory& a) { return kernel.make_directory(host, a.path); },
          [&](const MakeSymlink& a) { return kernel.make_symlink(host, a.path, a.target); },
          [&](const SetMode& a) { return kernel.set_mode(host, a.path, a.mode); },
          [&](const LoadModule& a) { return kernel.load_module(host, a.name); },
          [&](const WriteValue& a) { return kernel.write_value(host, a.path, a.value); },
          [&](const WriteFile& a) { return kernel.write_file(host, a.path, a.content); },
          [&](const RemoveFile& a) { return kernel.remove_file(host, a.path); },
          [&](const RunProgram& a) { return kernel.run(host, a.argv, a.deadline); },
      },
      action);
}

}  // namespace gantry::doctor
