// SPDX-License-Identifier: Apache-2.0
// kernel/ and kernel-open/ of a package: the simulated kernel driver (sim/kernel) in the folders of
// NVIDIA's.
#include "sim/package/package_parts_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::sim {
namespace {

struct KernelFile {
  std::string_view module;  // that it is for
  std::string_view name;    // in sim/kernel
  std::string_view place;   // in the package
  std::string_view tag;     // in the manifest
};

constexpr std::array kKernelFiles{
    KernelFile{"nvidia", "driver.c", "nvidia/driver.c", "resman"},
    KernelFile{"nvidia", "description.c", "nvidia/description.c", "resman"},
    KernelFile{"nvidia", "proc_files.c", "nvidia/proc_files.c", "resman"},
    KernelFile{"nvidia", "package.c", "nvidia/package.c", "resman"},
    KernelFile{"nvidia", "simulated.h", "common/inc/simulated.h", "resman"},
    KernelFile{"nvidia", "package.h", "common/inc/package.h", "resman"},
    KernelFile{"nvidia-uvm", "uvm.c", "nvidia-uvm/uvm.c", "uvm"},
    KernelFile{"nvidia-modeset", "modeset.c", "nvidia-modeset/modeset.c", "nvkms"},
    KernelFile{"nvidia-drm", "drm.c", "nvidia-drm/drm.c", "nvidia_drm"},
    KernelFile{"nvidia-peermem", "peermem.c", "nvidia-peermem/peermem.c", "nvidia_peermem"},
};

std::string manifest_kind(std::string_view tag) {
  return fmt::format("KERNEL_MODULE_SRC INHERIT_PATH_DEPTH:1 MODULE:{}", tag);
}

std::string c_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// What package.h includes.
std::string facts_of(const PackageParts& parts, Flavour flavour) {
  std::string text = fmt::format(
      "/* SPDX-License-Identifier: GPL-2.0 OR MIT */\n"
      "#define SIM_BRANCH {}\n#define SIM_OPEN {}\n#define SIM_BUILD {}\n#define SIM_PARAMETERS",
      parts.driver.branch, flavour == Flavour::Open ? 1 : 0, c_string(parts.driver.build));
  for (const auto& [name, value] : parts.cards.driver.params)
    text += fmt::format(" \\\n  SIM_PARAMETER({}, {})", c_string(name), c_string(value));
  return text + "\n";
}

// MODULE/MODULE.Kbuild: the module and the objects that it consists of.
std::string makefile_of(std::string_view module) {
  std::string text = fmt::format("obj-m += {0}.o\n{0}-y :=", module);
  for (const auto& file : kKernelFiles) {
    if (file.module == module && file.name.ends_with(".c"))
      text += fmt::format(" {}.o", file.place.substr(0, file.place.size() - 2));
  }
  return text + "\n";
}

Status add_folder(PackageContent& out, const PackageParts& parts, std::string_view folder,
                  Flavour flavour) {
  for (const auto* name : {"Makefile", "Kbuild", "conftest.sh"}) {
    GANTRY_TRY(auto text, parts.tree.package_file(fmt::format("kernel/{}", name), parts.driver));
    out.add(fmt::format("{}/{}", folder, name), std::move(text), 0644, manifest_kind("resman"));
  }
  GANTRY_TRY(auto dkms, parts.tree.package_file("kernel/dkms.conf", parts.driver));
  out.add(fmt::format("{}/dkms.conf", folder), std::move(dkms), 0644,
          "DKMS_CONF INHERIT_PATH_DEPTH:1 MODULE:resman");
  out.add(fmt::format("{}/common/inc/driver_facts.h", folder), facts_of(parts, flavour), 0644,
          manifest_kind("resman"));
  for (const auto& module : parts.driver.modules) {
    for (const auto& file : kKernelFiles) {
      if (file.module != module) continue;
      GANTRY_TRY(auto text, parts.tree.kernel_file(file.name));
      out.add(fmt::format("{}/{}", folder, file.place), std::move(text), 0644,
              manifest_kind(file.tag));
    }
    const auto* first = std::ranges::find(kKernelFiles, module, &KernelFile::module);
    out.add(fmt::format("{0}/{1}/{1}.Kbuild", folder, module), makefile_of(module), 0644,
            manifest_kind(first->tag));
  }
  return {};
}

}  // namespace

Status add_kernel_modules(PackageContent& out, const PackageParts& parts) {
  GANTRY_CHECK(add_folder(out, parts, "kernel", Flavour::Proprietary));
  if (!parts.driver.open) return {};
  return add_folder(out, parts, "kernel-open", Flavour::Open);
}

}  // namespace gantry::sim
