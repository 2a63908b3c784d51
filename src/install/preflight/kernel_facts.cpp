// SPDX-License-Identifier: Apache-2.0
// The kernel, what it can be extended with, and the compiler for that.
#include "base/core/text.hpp"
#include "install/driver_package/module_checksums.hpp"
#include "install/kernel_module/module_file.hpp"
#include "install/preflight/facts_internal.hpp"
#include "install/preflight/modprobe_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::preflight {
namespace {

// Google's installer has the headers in its image, those of the machine are better.
std::optional<kernel_module::KernelBuildDir> headers_of_image(const FactSources& sources,
                                                              std::string_view release) {
  if (sources.toolchain_root.empty()) return std::nullopt;
  const auto image = sys::Host::at(sources.toolchain_root);
  if (!image.ok()) return std::nullopt;
  auto headers = kernel_module::find_kernel_headers(*image, release);
  if (!headers.ok()) return std::nullopt;
  headers->in_image = true;
  return *std::move(headers);
}

void read_headers(const sys::Host& host, const FactSources& sources, MachineFacts& facts) {
  auto headers = kernel_module::find_kernel_headers(host, facts.build_release);
  if (headers.ok()) {
    facts.headers = *std::move(headers);
    return;
  }
  facts.headers = headers_of_image(sources, facts.build_release);
  if (!facts.headers) facts.headers_error = headers.error();
}

void read_modules(const sys::Host& host, MachineFacts& facts) {
  auto modules = kernel_module::read_loaded_modules(host);
  if (modules.ok()) {
    facts.modules = *std::move(modules);
  } else {
    facts.notes.push_back(modules.error().text());
  }
  facts.can_unload = std::none_of(facts.modules.begin(), facts.modules.end(),
                                  [](const auto& module) { return module.references < 0; });
  facts.modules_disabled = host.read_value("/proc/sys/kernel/modules_disabled") == "1" ||
                           (host.exists("/proc/version") && !host.exists("/proc/modules"));
}

void read_newer_kernels(const sys::Host& host, MachineFacts& facts) {
  const auto names = host.list("/lib/modules");
  if (!names.ok() || facts.kernel.release.empty()) return;
  for (const auto& name : *names) {
    const bool is_kernel = host.exists(fmt::format("/lib/modules/{}/modules.dep", name));
    if (is_kernel && kernel_module::newer_release(name, facts.kernel.release))
      facts.newer_kernels.push_back(name);
  }
}

void read_blacklists(const sys::Host& host, MachineFacts& facts) {
  for (const auto& line : read_modprobe_lines(host)) {
    if (!forbids_module(line.text, "nvidia")) continue;
    if (facts.blacklists.empty() || facts.blacklists.back() != line.path)
      facts.blacklists.push_back(line.path);
  }
}

// 12 for "12" and "12.2.0".
std::optional<int> parse_major(std::string_view text) {
  constexpr std::uint64_t kMaxCompilerMajor = 999;
  const auto number = parse_u64(text.substr(0, text.find('.')));
  if (!number || *number == 0 || *number > kMaxCompilerMajor) return std::nullopt;
  return static_cast<int>(*number);
}

// The number at the end of "gcc-12" and "x86_64-linux-gnu-gcc-12".
std::optional<int> major_in_name(std::string_view name, std::string_view compiler) {
  const auto dash = name.rfind('-');
  if (dash == std::string_view::npos || !name.substr(0, dash).ends_with(compiler))
    return std::nullopt;
  return parse_major(name.substr(dash + 1));
}

// Versions whose compiler proper, cc1, is installed.
std::vector<int> find_cc1(const sys::Host& host) {
  std::vector<int> majors;
  for (const auto* base : {"/usr/lib/gcc", "/usr/lib64/gcc", "/usr/libexec/gcc"}) {
    const auto targets = host.list(base);
    if (!targets.ok()) continue;
    for (const auto& target : *targets) {
      const auto directory = fmt::format("{}/{}", base, target);
      const auto versions = host.list(directory);
      if (!versions.ok()) continue;
      for (const auto& version : *versions) {
        const auto major = parse_major(version);
        if (major && host.exists(fmt::format("{}/{}/cc1", directory, version)))
          majors.push_back(*major);
      }
    }
  }
  std::sort(majors.begin(), majors.end());
  majors.erase(std::unique(majors.begin(), majors.end()), majors.end());
  return majors;
}

// What `gcc` is. Debian and SUSE link it to gcc-12; Red Hat has one gcc, whose version its
// directories tell.
std::optional<int> find_default_gcc(const sys::Host& host, const std::vector<int>& cc1) {
  for (const auto* path : {"/usr/bin/gcc", "/usr/bin/cc"}) {
    const auto resolved = host.resolve(path);
    if (!resolved.ok() || !host.exists(*resolved)) continue;
    const auto name = base_name(*resolved);
    if (const auto major = major_in_name(name, "gcc")) return major;
    if ((name == "gcc" || name.ends_with("-gcc")) && !cc1.empty()) return cc1.back();
  }
  return std::nullopt;
}

void read_compilers(const sys::Host& host, CompilerFact& compiler) {
  const auto cc1 = find_cc1(host);
  compiler.default_gcc = find_default_gcc(host, cc1);
  for (const int major : cc1) {
    const bool callable =
        major == compiler.default_gcc || host.exists(fmt::format("/usr/bin/gcc-{}", major));
    if (callable) compiler.gcc.push_back(major);
  }
  const auto programs = host.list("/usr/bin").value_or({});
  for (const auto& name : programs) {
    if (name == "clang") compiler.has_clang = true;
    if (!name.starts_with("clang-")) continue;
    if (const auto major = major_in_name(name, "clang")) compiler.clang.push_back(*major);
  }
  for (const auto& name : programs) {
    if (name == "ld.lld") compiler.has_lld = true;
    if (const auto major = major_in_name(name, "ld.lld")) compiler.lld.push_back(*major);
  }
  std::sort(compiler.lld.begin(), compiler.lld.end());
  std::sort(compiler.clang.begin(), compiler.clang.end());
  compiler.has_make = host.exists("/usr/bin/make");
  compiler.has_linker = host.exists("/usr/bin/ld");
}

// Everything that a build calls is in one place: the host's, if it has all of it.
bool is_complete(const CompilerFact& compiler, const MachineFacts& facts) {
  const auto kernel = kernel_of_build(facts);
  if (kernel.clang_major) return compiler.has_make && choose_clang(compiler, kernel).has_value();
  return compiler.has_make && compiler.has_linker && compiler.default_gcc;
}

void check_digests(const sys::Host& host, const FactSources& sources, const std::string& directory,
                   std::vector<PrecompiledFact>& modules) {
  const auto list = driver_package::read_module_checksums(host, sources.modules, directory,
                                                          sources.modules_sha256);
  for (auto& fact : modules) {
    const auto name = std::string(base_name(fact.path));
    const auto checked = list.ok()
                             ? driver_package::check_module_digest(host, *list, name, fact.path)
                             : Status(list.error());
    if (!checked.ok()) fact.digest_fault = checked.error();
  }
}

}  // namespace

void read_kernel(const sys::Host& host, const FactSources& sources, MachineFacts& facts) {
  auto kernel = kernel_module::read_running_kernel(host);
  if (kernel.ok()) {
    facts.kernel = *std::move(kernel);
  } else {
    facts.notes.push_back(kernel.error().text());
  }
  facts.build_release = sources.kernel.empty() ? facts.kernel.release : sources.kernel;
  if (!facts.build_release.empty()) read_headers(host, sources, facts);
  facts.trust = kernel_module::read_module_trust(host);
  read_modules(host, facts);
  read_newer_kernels(host, facts);
  read_blacklists(host, facts);
}

// In a directory of the release, or in the one that was named.
void read_precompiled(const sys::Host& host, const FactSources& sources, MachineFacts& facts) {
  constexpr std::size_t kMaxPrecompiledModules = 32;
  if (sources.modules.empty()) return;
  for (const auto& directory :
       {fmt::format("{}/{}", sources.modules, facts.build_release), sources.modules}) {
    for (const auto& name : host.list(directory).value_or({})) {
      if (!name.ends_with(".ko") || facts.precompiled.size() >= kMaxPrecompiledModules) continue;
      const auto path = join_path(directory, name);
      facts.precompiled.push_back({path, kernel_module::read_module(host, path)});
    }
    if (facts.precompiled.empty()) continue;
    check_digests(host, sources, directory, facts.precompiled);
    return;
  }
}

void read_toolchain(const sys::Host& host, const FactSources& sources, MachineFacts& facts) {
  read_compilers(host, facts.compiler);
  if (sources.toolchain_root.empty() || is_complete(facts.compiler, facts)) return;
  facts.compiler = {.from_image = true};
  const auto image = sys::Host::at(sources.toolchain_root);
  if (image.ok()) {
    read_compilers(*image, facts.compiler);
  } else {
    facts.notes.push_back(image.error().text());
  }
}

}  // namespace gantry::preflight
