// SPDX-License-Identifier: Apache-2.0
// /sys apart from PCI: modules, NUMA nodes, firmware.
#include "sim/machine/topology.hpp"
#include "sim/machine/tree_internal.hpp"

#include <fmt/format.h>

namespace gantry::sim {
namespace {

void write_modules(TreeWriter& out, const Machine& m) {
  for (const auto& module : m.driver.modules) {
    if (module.of_driver && !driver_loaded(m)) continue;
    const auto d = "/sys/module/" + module.name;
    out.file(d + "/initstate", "live\n");
    out.file(d + "/coresize", fmt::format("{}\n", module.size));
    if (m.driver.module_unload) out.file(d + "/refcnt", fmt::format("{}\n", module.references));
    if (!module.taint.empty())
      out.file(d + "/taint", module.taint.substr(1, module.taint.size() - 2) + "\n");
    if (module.of_driver) {
      out.file(d + "/version", m.driver.module_version + "\n");
      if (module.name == "nvidia") out.file(d + "/srcversion", m.driver.srcversion + "\n");
    }
    if (module.name == "nvidia")
      out.relative_link(d + "/drivers/pci:nvidia", "/sys/bus/pci/drivers/nvidia");
    if (module.name == "nvidia_drm") out.file(d + "/parameters/modeset", "N\n", 0400);
  }
}

void write_firmware_path(TreeWriter& out, const Machine& m) {
  const auto& path = m.driver.firmware_directory;
  const bool standard = path.empty() || path == "/lib/firmware" || path == "/usr/lib/firmware";
  out.file("/sys/module/firmware_class/parameters/path", standard ? "\n" : path + "\n", 0644);
  out.file("/sys/module/module/parameters/sig_enforce", m.secure_boot ? "Y\n" : "N\n", 0644);
}

void write_numa(TreeWriter& out, const Machine& m) {
  const std::string base = "/sys/devices/system/node";
  const auto count = m.numa.empty() ? std::size_t{1} : m.numa.size();
  const std::string range = count == 1 ? "0\n" : fmt::format("0-{}\n", count - 1);
  for (const auto* name : {"online", "possible", "has_cpu", "has_memory", "has_normal_memory"}) {
    out.file(fmt::format("{}/{}", base, name), range);
  }
  for (std::size_t i = 0; i < m.numa.size(); ++i) {
    const auto d = fmt::format("{}/node{}", base, i);
    const auto& cpus = m.numa[i].cpus;
    out.file(d + "/cpulist", cpus + "\n");
    out.file(
        d + "/cpumap",
        cpu_mask(parse_cpu_list(cpus).value_or(std::vector<std::uint32_t>{}), cpu_count(m)) + "\n");
    out.file(d + "/meminfo",
             fmt::format("Node {} MemTotal: {:>14} kB\n", i, m.numa[i].memory_mib * 1024));
    std::string distance;
    for (std::size_t j = 0; j < count; ++j)
      distance += fmt::format("{}{}", j == 0 ? "" : " ", i == j ? 10 : 21);
    out.file(d + "/distance", distance + "\n");
  }
  const std::string all = local_cpus(m, -1) + "\n";
  for (const auto* name : {"online", "possible", "present"}) {
    out.file(fmt::format("/sys/devices/system/cpu/{}", name), all);
  }
}

void write_platform(TreeWriter& out, const Machine& m) {
  for (const auto& [key, value] : m.dmi) out.file("/sys/class/dmi/id/" + key, value + "\n");
  if (m.efi) {
    out.file("/sys/firmware/efi/fw_platform_size", "64\n");
    // Four bytes of attributes, then the value.
    const std::string value = {'\x06', '\x00', '\x00', '\x00', m.secure_boot ? '\x01' : '\x00'};
    out.file("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", value,
             0644);
  }
  if (!m.lockdown.empty()) {
    std::string text;
    for (const auto* mode : {"none", "integrity", "confidentiality"}) {
      if (!text.empty()) text += ' ';
      text += m.lockdown == mode ? fmt::format("[{}]", mode) : mode;
    }
    out.file("/sys/kernel/security/lockdown", text + "\n", 0644);
  }
  out.file("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n");
}

}  // namespace

void write_sys(TreeWriter& out, const Machine& m) {
  write_modules(out, m);
  write_firmware_path(out, m);
  write_numa(out, m);
  write_platform(out, m);
}

}  // namespace gantry::sim
