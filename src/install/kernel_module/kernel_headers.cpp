// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"
#include "install/kernel_module/running_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::kernel_module {
namespace {

constexpr std::size_t kMaxReleaseFile = 65536;
constexpr std::size_t kMaxConfiguration = std::size_t{2} << 20U;

// #define UTS_RELEASE "6.1.0-21-amd64"
std::string release_in(std::string_view header) {
  constexpr std::string_view kDefine = "#define UTS_RELEASE \"";
  const auto at = header.find(kDefine);
  if (at == std::string_view::npos) return "";
  const auto text = header.substr(at + kDefine.size());
  const auto end = text.find('"');
  return end == std::string_view::npos ? "" : std::string(text.substr(0, end));
}

std::string prepared_release(const sys::Host& host, const std::string& directory) {
  const auto header = host.read(directory + "/include/generated/utsrelease.h", kMaxReleaseFile);
  auto release = header.ok() ? release_in(*header) : "";
  if (!release.empty()) return release;
  return host.read_value(directory + "/include/config/kernel.release").value_or("");
}

// CONFIG_GCC_VERSION=120200; 0 of a kernel that clang built.
std::optional<int> compiler_in_line(std::string_view line, std::string_view name) {
  constexpr std::uint64_t kPerMajor = 10'000;
  if (!line.starts_with(name)) return std::nullopt;
  const auto version = parse_u64(line.substr(name.size()));
  if (!version || *version < kPerMajor || *version >= 1000 * kPerMajor) return std::nullopt;
  return static_cast<int>(*version / kPerMajor);
}

void read_compiler(const sys::Host& host, KernelBuildDir& found) {
  const auto text = host.read(found.directory + "/include/config/auto.conf", kMaxConfiguration);
  if (!text.ok()) return;
  for (const auto line : lines(*text)) {
    if (const auto gcc = compiler_in_line(line, "CONFIG_GCC_VERSION=")) found.gcc_major = gcc;
    if (const auto clang = compiler_in_line(line, "CONFIG_CLANG_VERSION="))
      found.clang_major = clang;
    if (line == "CONFIG_LD_IS_LLD=y") found.uses_lld = true;
  }
}

bool has_makefiles(const sys::Host& host, const std::string& directory) {
  return host.exists(directory + "/scripts/Makefile.build") ||
         host.exists(directory + "/scripts/Makefile");
}

KernelBuildDir look_at(const sys::Host& host, const std::string& directory,
                       const std::string& source) {
  KernelBuildDir found{.directory = directory, .source = directory};
  found.release = prepared_release(host, directory);
  found.has_scripts = has_makefiles(host, directory);
  // SUSE has the makefiles in another directory than the configuration.
  if (!found.has_scripts && !source.empty() && has_makefiles(host, source)) {
    found.source = source;
    found.has_scripts = true;
  }
  found.has_symbol_versions = host.exists(directory + "/Module.symvers");
  read_compiler(host, found);
  return found;
}

bool can_build(const KernelBuildDir& directory, std::string_view release) {
  return directory.release == release && directory.has_scripts;
}

std::string headers_remedy(const sys::Host& host, std::string_view release) {
  const auto word = sys::shell_word(release);
  const auto flavour = release.substr(release.rfind('-') + 1);
  std::string command;
  if (host.exists("/usr/bin/apt-get")) {
    command = fmt::format("sudo apt-get install linux-headers-{}", word);
  } else if (host.exists("/usr/bin/zypper")) {
    command = fmt::format("sudo zypper install {}",
                          sys::shell_word(fmt::format("kernel-{}-devel", flavour)));
  } else if (host.exists("/usr/bin/dnf") || host.exists("/usr/bin/tdnf")) {
    command = fmt::format("sudo {} install kernel-devel-{}",
                          host.exists("/usr/bin/dnf") ? "dnf" : "tdnf", word);
  } else {
    return fmt::format("install the kernel headers of {}, or use modules that are already built",
                       release);
  }
  return "install them with: " + sys::on_machine(host, command) +
         ", or use modules that are already built";
}

std::string why_not(const KernelBuildDir& directory, std::string_view release) {
  if (directory.release.empty())
    return fmt::format("{} is not prepared: include/generated/utsrelease.h is missing",
                       directory.directory);
  if (directory.release != release)
    return fmt::format("{} is for kernel {}, not for {}", directory.directory, directory.release,
                       release);
  return fmt::format("{} has no makefiles: scripts/Makefile.build is missing", directory.directory);
}

}  // namespace

std::vector<KernelBuildDir> kernel_build_directories(const sys::Host& host,
                                                     std::string_view release) {
  std::vector<KernelBuildDir> found;
  if (release.empty() || contains(release, "/")) return found;
  const auto modules = fmt::format("/lib/modules/{}", release);
  const auto source = host.resolve(modules + "/source").value_or("");
  for (const auto& path : {modules + "/build", fmt::format("/usr/src/linux-headers-{}", release),
                           fmt::format("/usr/src/kernels/{}", release)}) {
    const auto directory = host.resolve(path);
    if (!directory.ok() || !host.list(*directory).ok()) continue;
    const bool known = std::any_of(found.begin(), found.end(), [&](const KernelBuildDir& other) {
      return other.directory == *directory;
    });
    if (!known) found.push_back(look_at(host, *directory, source));
  }
  return found;
}

Result<KernelBuildDir> find_kernel_headers(const sys::Host& host, std::string_view release) {
  const auto directories = kernel_build_directories(host, release);
  for (const auto& directory : directories) {
    if (can_build(directory, release)) return directory;
  }
  if (!directories.empty())
    return Error(Errc::Corrupt, fmt::format("modules cannot be built for kernel {}: {}", release,
                                            why_not(directories.front(), release)))
        .advise(headers_remedy(host, release));
  const auto build = fmt::format("/lib/modules/{}/build", release);
  const auto target = host.link(build);
  const auto detail = target.ok() ? fmt::format("{} points to {}, which does not exist",
                                                host.outside(build), *target)
                                  : fmt::format("{} does not exist", host.outside(build));
  return Error(Errc::NotFound,
               fmt::format("the headers of kernel {} are not installed: {}", release, detail))
      .advise(headers_remedy(host, release));
}

}  // namespace gantry::kernel_module
