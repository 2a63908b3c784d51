// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "sim/machine/topology.hpp"
#include "sim/machine/tree_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::sim {
namespace {

struct Major {
  std::uint32_t number;
  std::string name;
};

std::string proc_devices(const Machine& m) {
  std::vector<Major> majors = {{1, "mem"},      {4, "/dev/vc/0"},    {4, "tty"},       {4, "ttyS"},
                               {5, "/dev/tty"}, {5, "/dev/console"}, {5, "/dev/ptmx"}, {7, "vcs"},
                               {10, "misc"},    {13, "input"},       {29, "fb"},       {128, "ptm"},
                               {136, "pts"},    {226, "drm"},        {254, "gpiochip"}};
  if (driver_loaded(m)) {
    const auto major =
        parse_u64(std::string_view(m.driver.module_version).substr(0, 3)).value_or(0);
    if (major >= 550) {
      majors.push_back({m.driver.nvidia_major, "nvidia"});
      majors.push_back({m.driver.nvidia_major, "nvidiactl"});
    } else {
      majors.push_back({m.driver.nvidia_major, "nvidia-frontend"});
    }
    const Major dynamic[] = {{m.driver.uvm_major, "nvidia-uvm"},
                             {m.driver.nvswitch_major, "nvidia-nvswitch"},
                             {m.driver.nvlink_major, "nvidia-nvlink"},
                             {m.driver.caps_major, "nvidia-caps"},
                             {m.driver.imex_major, "nvidia-caps-imex-channels"}};
    for (const auto& one : dynamic) {
      if (one.number != 0) majors.push_back(one);
    }
  }
  if (std::any_of(m.pci.begin(), m.pci.end(),
                  [](const auto& f) { return f.driver == "vfio-pci"; })) {
    majors.push_back({511, "vfio"});
  }
  for (const auto& node : m.nodes.others) {
    const bool known = std::any_of(majors.begin(), majors.end(),
                                   [&](const Major& one) { return one.name == node.device; });
    if (!known && !node.device.empty()) majors.push_back({node.major, node.device});
  }
  std::stable_sort(majors.begin(), majors.end(),
                   [](const auto& a, const auto& b) { return a.number < b.number; });
  std::string text = "Character devices:\n";
  for (const auto& one : majors) text += fmt::format("{:>3} {}\n", one.number, one.name);
  return text + "\nBlock devices:\n  7 loop\n  8 sd\n259 blkext\n";
}

std::string proc_modules(const Machine& m) {
  std::string text;
  for (const auto& module : m.driver.modules) {
    if (module.of_driver && !driver_loaded(m)) continue;
    const std::string users = module.users.empty() ? "-" : module.users + ",";
    const std::string count = m.driver.module_unload ? fmt::to_string(module.references) : "-";
    text += fmt::format("{} {} {} {} Live 0x{:016x}{}{}\n", module.name, module.size, count,
                        m.driver.module_unload ? users : "-", module.address,
                        module.taint.empty() ? "" : " ", module.taint);
  }
  return text;
}

std::string proc_cpuinfo(const Machine& m) {
  std::string text;
  for (std::size_t i = 0; i < cpu_count(m); ++i) {
    text += fmt::format(
        "processor\t: {}\nvendor_id\t: {}\nmodel name\t: {}\nflags\t\t: fpu tsc msr pae cx8 apic "
        "sep cmov "
        "sse sse2 ht syscall nx lm pni ssse3 fma cx16 sse4_1 sse4_2 popcnt aes avx avx2{}\n\n",
        i, m.cpu_vendor, m.cpu_model, m.hypervisor ? " hypervisor" : "");
  }
  return text;
}

std::string proc_meminfo(const Machine& m) {
  std::uint64_t mib = 0;
  for (const auto& node : m.numa) mib += node.memory_mib;
  if (mib == 0) mib = 16384;
  return fmt::format(
      "MemTotal:       {:>9} kB\nMemFree:        {:>9} kB\nMemAvailable:   {:>9} kB\n"
      "HugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n",
      mib * 1024, mib * 512, mib * 900);
}

void write_process(TreeWriter& out, std::uint32_t pid, std::string_view name,
                   std::string_view pid_file) {
  const auto directory = fmt::format("/proc/{}", pid);
  out.file(directory + "/comm", fmt::format("{}\n", name.substr(0, 15)));
  out.file(directory + "/cmdline", std::string(name) + '\0');
  out.file(directory + "/status",
           fmt::format("Name:\t{}\nState:\tS (sleeping)\nPid:\t{}\nUid:\t0\t0\t0\t0\n"
                       "Gid:\t0\t0\t0\t0\nGroups:\t \n",
                       name.substr(0, 15), pid));
  if (!pid_file.empty()) out.file(pid_file, fmt::format("{}\n", pid), 0644);
}

}  // namespace

void write_proc(TreeWriter& out, const Machine& m) {
  out.file("/proc/devices", proc_devices(m));
  out.file("/proc/modules", proc_modules(m));
  out.file("/proc/version",
           fmt::format("Linux version {} {}\n", m.kernel_release, m.kernel_version));
  out.file("/proc/cmdline", m.cmdline + "\n");
  out.file("/proc/cpuinfo", proc_cpuinfo(m));
  out.file("/proc/meminfo", proc_meminfo(m));
  out.file("/proc/filesystems",
           "nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\nnodev\tcgroup2\nnodev\tdevtmpfs\n\text4\n");
  out.file("/proc/mounts",
           "sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0\n"
           "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n"
           "udev /dev devtmpfs rw,nosuid,relatime 0 0\n"
           "tmpfs /run tmpfs rw,nosuid,nodev 0 0\n"
           "/dev/sda1 / ext4 rw,relatime 0 0\n");
  out.file("/proc/sys/kernel/osrelease", m.kernel_release + "\n");
  out.file("/proc/sys/kernel/hostname", m.hostname + "\n");
  out.file("/proc/sys/kernel/ostype", "Linux\n");
  out.file("/proc/sys/kernel/random/boot_id", m.boot_id + "\n");
  out.file("/proc/sys/kernel/tainted", driver_loaded(m) ? "4096\n" : "0\n");
  out.file("/proc/sys/vm/overcommit_memory", "0\n");
  write_process(out, 1, "systemd", "");
  if (m.driver.persistenced && driver_loaded(m)) {
    write_process(out, 811, "nvidia-persistenced",
                  "/run/nvidia-persistenced/nvidia-persistenced.pid");
    out.socket("/run/nvidia-persistenced/socket");
  }
  if (m.driver.gridd && driver_loaded(m))
    write_process(out, 902, "nvidia-gridd", "/run/nvidia-gridd/nvidia-gridd.pid");
  if (!m.driver.vgpu_framework.empty() && driver_loaded(m))
    write_process(out, 934, "nvidia-vgpu-mgr", "");
  if (m.driver.fabric_manager == 1 && driver_loaded(m)) {
    write_process(out, 1207, "nv-fabricmanager", "/run/nvidia-fabricmanager/nv-fabricmanager.pid");
    out.socket("/run/nvidia-fabricmanager/socket");
  }
}

}  // namespace gantry::sim
