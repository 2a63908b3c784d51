// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/facts.hpp"

#include "install/preflight/facts_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::preflight {

std::string GpuFact::describe() const {
  const auto generation = to_string(architecture);
  std::string what = name.empty() ? fmt::format("10de:{:04x}", device) : name;
  if (!generation.empty()) what += fmt::format(", {}", generation);
  if (is_vgpu) what += ", vGPU";
  return fmt::format("{} ({})", address.sysfs(), what);
}

std::string describe(const HolderFact& holder) {
  auto process = holder.process;
  process.node = fmt::format("{}", fmt::join(holder.nodes, ", "));
  auto text = vfio::describe(process);
  if (process.pod.empty() && !holder.container.empty())
    text += fmt::format(", in container {}", holder.container.substr(0, 12));
  return text;
}

std::string_view to_string(InstalledKind kind) {
  switch (kind) {
    case InstalledKind::None: return "none";
    case InstalledKind::Gantry: return "gantry";
    case InstalledKind::Run: return "run";
    case InstalledKind::Deb: return "deb";
    case InstalledKind::Rpm: return "rpm";
    case InstalledKind::Google: return "google";
    case InstalledKind::VgpuHost: return "vgpu-host";
    case InstalledKind::Container: return "container";
    case InstalledKind::Unknown: break;
  }
  return "unknown";
}

bool MachineFacts::is_loaded(std::string_view module) const {
  return kernel_module::find_loaded(modules, module) != nullptr;
}

const DiskFact* MachineFacts::disk(std::string_view path) const {
  const auto found = std::find_if(disks.begin(), disks.end(),
                                  [&](const DiskFact& disk) { return disk.path == path; });
  return found == disks.end() ? nullptr : &*found;
}

const FileFact* MachineFacts::file(std::string_view path) const {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const FileFact& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

const InstalledDriver* MachineFacts::find_installed(InstalledKind kind) const {
  const auto found =
      std::find_if(installed.begin(), installed.end(),
                   [&](const InstalledDriver& driver) { return driver.kind == kind; });
  return found == installed.end() ? nullptr : &*found;
}

std::vector<Architecture> MachineFacts::architectures() const {
  std::vector<Architecture> found;
  for (const auto& gpu : gpus) {
    if (!gpu.is_for_virtual_machines()) found.push_back(gpu.architecture);
  }
  return found;
}

Result<MachineFacts> read_facts(const sys::Host& host, const FactSources& sources) {
  MachineFacts facts;
  facts.machine = sources.machine;
  facts.rights = sources.rights;
  facts.wsl = host.exists("/dev/dxg") || host.exists("/usr/lib/wsl/lib");
  GANTRY_CHECK(read_gpus(host, facts));
  if (const auto release = driver_package::read_os_release(host); release.ok()) {
    facts.os = *release;
  } else {
    facts.notes.push_back(release.error().text());
  }
  read_kernel(host, sources, facts);
  read_toolchain(host, sources, facts);
  read_precompiled(host, sources, facts);  // after the kernel
  read_installed(host, sources, facts);
  read_users(host, facts);
  read_storage(host, sources, facts);
  read_clock(host, sources, facts);
  read_libc(host, facts);
  return facts;
}

kernel_module::RunningKernel kernel_of_build(const MachineFacts& facts) {
  return facts.headers ? kernel_module::with_compiler_of(facts.kernel, *facts.headers)
                       : facts.kernel;
}

std::optional<ClangTools> choose_clang(const CompilerFact& compiler,
                                       const kernel_module::RunningKernel& kernel) {
  const auto has = [](const std::vector<int>& majors, std::optional<int> wanted) {
    return wanted && std::find(majors.begin(), majors.end(), *wanted) != majors.end();
  };
  const bool same_linker = !kernel.uses_lld || has(compiler.lld, kernel.clang_major);
  if (has(compiler.clang, kernel.clang_major) && same_linker)
    return ClangTools{.suffix = "-" + std::to_string(*kernel.clang_major)};
  if (compiler.has_clang && (!kernel.uses_lld || compiler.has_lld)) return ClangTools{};
  return std::nullopt;
}

}  // namespace gantry::preflight
