// SPDX-License-Identifier: Apache-2.0
// The running kernel: its release, the compiler that built it, and its headers, which a module is
// built with.
#pragma once

#include "base/sys/host.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace gantry::kernel_module {

struct RunningKernel {
  std::string release;           // "6.1.0-21-amd64"
  std::string version_text;      // all of /proc/version
  std::optional<int> gcc_major;  // of the compiler that built it; nullopt if that is not gcc
  std::optional<int> clang_major;
  bool uses_lld = false;  // linked by LLVM's linker, as link-time optimisation needs it
  bool operator==(const RunningKernel&) const = default;
};

// `version_text` is /proc/version, `release` /proc/sys/kernel/osrelease; if the release is "", it
// is taken from the text.
RunningKernel parse_running_kernel(std::string_view version_text, std::string_view release);
Result<RunningKernel> read_running_kernel(const sys::Host& host);

// The major version in the first line of `gcc --version`: 12 for "gcc (Debian 12.2.0-14) 12.2.0".
std::optional<int> compiler_major(std::string_view version_output);

struct KernelBuildDir {
  std::string directory;             // "/lib/modules/RELEASE/build", resolved
  std::string source;                // where the makefiles are; most often the same directory
  std::string release;               // include/generated/utsrelease.h; "" if that is missing
  bool has_scripts = false;          // scripts/Makefile.build
  bool has_symbol_versions = false;  // Module.symvers: without it a module has no dependencies
  std::optional<int> gcc_major{};    // of the compiler that built that kernel
  std::optional<int> clang_major{};
  bool uses_lld = false;
  bool in_image = false;  // of the image that Gantry runs in, not of the machine
  bool operator==(const KernelBuildDir&) const = default;
};

// The running kernel, with the compiler and the linker of the one whose headers these are, if they
// tell.
RunningKernel with_compiler_of(RunningKernel kernel, const KernelBuildDir& headers);

// NotFound if there is no directory for this release: the remedy names the package. Corrupt if the
// directory that is there cannot build modules for the release: it was prepared for another one, or
// its makefiles are missing.
Result<KernelBuildDir> find_kernel_headers(const sys::Host& host, std::string_view release);

// The same without an opinion: all directories that exist, the one that kbuild uses first.
std::vector<KernelBuildDir> kernel_build_directories(const sys::Host& host,
                                                     std::string_view release);

}  // namespace gantry::kernel_module
