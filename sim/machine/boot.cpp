// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/boot.hpp"

#include "sim/machine/boot_internal.hpp"

#include <fmt/format.h>

#include <initializer_list>

namespace gantry::sim {
namespace {

// The characters that separate values for QEMU, for the loader and for the kernel's overlay.
Status check_path(const std::string& path, std::string_view flag) {
  if (!path.starts_with("/"))
    return Error(Errc::Invalid, fmt::format("\"{}\" is not an absolute path", path));
  const auto at = path.find_first_of(" \t\n:,\\");
  if (at == std::string::npos) return {};
  return Error(Errc::Invalid,
               fmt::format("the path {} contains '{}', which QEMU, LD_PRELOAD or the kernel would "
                           "take for a separator; use another path for {}",
                           path, path[at], flag));
}

std::string twice_each_comma(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == ',') out += c;
  }
  return out;
}

class Arguments {
 public:
  void add(std::initializer_list<std::string> words) { all.insert(all.end(), words); }
  // The host's first program reads this below /sys/firmware/qemu_fw_cfg.
  void add_value(std::string_view name, std::string_view text) {
    if (text.empty()) return;
    add({"-fw_cfg", fmt::format("name=opt/gantry/{},string={}", name, twice_each_comma(text))});
  }

  std::vector<std::string> all;
};

// A directory of this machine that the host can read.
void add_files(Arguments& out, std::string_view name, std::string_view path) {
  out.add({"-fsdev",
           fmt::format("local,id={},path={},security_model=none,readonly=on,multidevs=remap", name,
                       path),
           "-device",
           fmt::format("virtio-9p-pci,bus=pcie.0,fsdev={0},mount_tag=gantry-{0}", name)});
}

// The host puts the changes of its root file system there (sim/host/init).
void add_disk(Arguments& out, const std::string& path) {
  out.add({"-drive", fmt::format("if=none,id=changes,format=raw,file={}", path), "-device",
           "virtio-blk-pci,bus=pcie.0,drive=changes,serial=gantry-changes"});
}

// One CPU and an equal part of the memory for each NUMA node. The kernel warns if CPUs of one
// socket are on two nodes.
void add_memory(Arguments& out, const Machine& machine, std::uint32_t memory_mib) {
  const auto nodes = machine.numa.size() > 1 ? machine.numa.size() : 1;
  const auto each = memory_mib / nodes;
  out.add({"-smp", nodes == 1 ? "1" : fmt::format("{0},sockets={0}", nodes), "-m",
           fmt::format("{}M", each * nodes)});
  if (nodes == 1) return;
  for (std::size_t i = 0; i < nodes; ++i) {
    out.add({"-object", fmt::format("memory-backend-ram,id=memory{},size={}M", i, each), "-numa",
             fmt::format("node,nodeid={0},memdev=memory{0},cpus={0}", i)});
  }
}

}  // namespace

Result<BootPlan> plan_boot(const Machine& machine, const BootOptions& options) {
  GANTRY_CHECK(check_path(options.parts, "--parts"));
  if (!options.disk.empty()) GANTRY_CHECK(check_path(options.disk, "--disk"));
  GANTRY_TRY(const auto buses, boot_topology(machine));
  const auto addresses = boot_addresses(buses);
  const auto kernel = fmt::format("{}/{}", options.parts, options.kernel);

  BootPlan plan;
  plan.preload = options.parts + "/gantry-gpu.so";
  plan.description = boot_description(machine, addresses);
  Arguments out;
  out.add({"qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu",
           options.cpu, "-nographic", "-no-reboot", "-net", "none", "-vga", "none"});
  add_memory(out, machine, options.memory_mib);
  if (options.iommu) out.add({"-device", "intel-iommu,intremap=on,caching-mode=on"});
  auto devices = boot_devices(buses, options.bar_divisor);
  out.all.insert(out.all.end(), devices.begin(), devices.end());
  add_files(out, "root", "/");
  add_files(out, "layer", kernel + "/root");
  if (!options.disk.empty()) add_disk(out, options.disk);
  out.add_value("machine", plan.description);
  out.add_value("modules", boot_modules(machine));
  out.add_value("run", options.script);
  // On a busy machine QEMU's timer may come too late for the kernel's check of it, which panics.
  std::string parameters = "console=ttyS0 panic=-1 quiet no_timer_check intel_iommu=on";
  if (!options.kernel_parameters.empty()) parameters += ' ' + options.kernel_parameters;
  out.add({"-kernel", kernel + "/vmlinux", "-initrd", kernel + "/initrd", "-append", parameters});
  out.all.insert(out.all.end(), options.more.begin(), options.more.end());
  plan.qemu = std::move(out.all);
  for (const auto& gpu : machine.gpus)
    plan.gpus.push_back({gpu.pci.address, addresses.at(gpu.pci.address)});
  return plan;
}

}  // namespace gantry::sim
