// SPDX-License-Identifier: Apache-2.0
// The modules of a version for one kernel: built from its source, or copied from where they were
// built, checked against what the kernel accepts, and placed as one directory.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "install/driver_package/sign_file.hpp"
#include "install/driver_setup/install_effects.hpp"
#include "install/driver_setup/install_record.hpp"
#include "install/kernel_module/module_trust.hpp"
#include "install/kernel_module/running_kernel.hpp"
#include "install/preflight/facts.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_setup {

struct ModuleBuild {
  std::string kernel;       // the release
  std::string source;       // directory with the source
  std::string directory;    // where it is built; removed afterwards
  std::string destination;  // where the modules are placed
  kernel_module::KernelBuildDir headers;
  std::string compiler;   // "gcc-12", "clang", "clang-17"; "" for the usual one
  bool uses_lld = false;  // link as the kernel was linked
  unsigned jobs = 1;
  driver_package::SigningKey key;  // key "" to leave the modules unsigned
};

// The command that builds the modules: `make` against the kernel's headers, outside of them.
ProgramCall make_command(const ModuleBuild& build);

// What built the kernel: "clang" or "clang-17" for one of clang's, also if it is missing; otherwise
// "gcc-12" if the usual compiler has another major version than the one that built the kernel and
// one with the right version is there; "" otherwise.
std::string choose_compiler(const preflight::CompilerFact& compiler,
                            const kernel_module::RunningKernel& kernel);

// The directory in an unpacked archive in which `patch -p1` finds the files that the patch names:
// the archive's own, or the one with the source. Invalid if the text is not a patch.
Result<std::string> patch_directory(std::string_view patch, std::string_view unpacked,
                                    std::string_view source);

// Why the kernel would refuse a module of this version: another release or driver version, no
// signature where one is needed.
Status check_module(const kernel_module::ModuleFile& module, std::string_view kernel,
                    const InstallRecord& target, const kernel_module::ModuleTrust& trust);

// Builds, signs, checks and places. Nothing is left behind if it fails.
Status build_modules(const sys::Host& host, const ModuleBuild& build, const InstallRecord& target,
                     const kernel_module::ModuleTrust& trust, InstallEffects& effects);

// Modules that were built elsewhere: DIRECTORY/KERNEL/*.ko or DIRECTORY/*.ko.
struct BuiltModules {
  std::string directory;
  std::string kernel;
  std::string list_sha256;  // of the list of their digests; "" = not pinned
  bool trust_without_digest = false;
  std::string staging;      // where they are copied to and checked: nobody else can write there
  std::string destination;  // where the modules are placed
};

// Copies, checks and places them.
Status copy_modules(const sys::Host& host, const BuiltModules& modules, const InstallRecord& target,
                    const kernel_module::ModuleTrust& trust, InstallEffects& effects);

}  // namespace gantry::driver_setup
