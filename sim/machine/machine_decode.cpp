// SPDX-License-Identifier: Apache-2.0
// The keys of a machine file, one list per map.
#include "base/core/text.hpp"
#include "sim/machine/machine_internal.hpp"
#include "sim/machine/yaml_fields_internal.hpp"

#include <fmt/format.h>

namespace gantry::sim {
namespace {

constexpr std::size_t kMaxPciFunctions = 256;
constexpr std::size_t kMaxNumaNodes = 64;
constexpr std::size_t kMaxVfs = 240;  // with the offset they stay on one bus

Status decode_module(const YamlValue& map, KernelModule& module) {
  YamlFields f(map, "module");
  f.text("name", module.name).u64("size", module.size).text("users", module.users);
  f.u32("references", module.references).flag("of_driver", module.of_driver);
  f.u64("address", module.address).text("taint", module.taint);
  return f.finish();
}

// "13.0" -> 13000, as cuDriverGetVersion gives it
void cuda_version(YamlFields& f, const YamlValue& map, std::uint32_t& out) {
  std::string text;
  f.text("cuda", text);
  if (text.empty()) return;
  const auto parts = split(text, '.');
  const auto major = parts.size() == 2 ? parse_u64(parts[0]) : std::nullopt;
  const auto minor = parts.size() == 2 ? parse_u64(parts[1]) : std::nullopt;
  if (!major || !minor || *major > 99 || *minor > 99) {
    f.fail(*map.find("cuda"), "cuda must be a version such as \"13.0\"");
    return;
  }
  out = static_cast<std::uint32_t>(*major * 1000 + *minor * 10);
}

Status decode_driver(const YamlValue& map, Driver& d) {
  YamlFields f(map, "driver");
  f.text("version", d.version);
  d.module_version = d.version;
  f.text("module_version", d.module_version);
  cuda_version(f, map, d.cuda);
  std::string flavour = "proprietary";
  f.text("flavour", flavour);
  if (flavour != "proprietary" && flavour != "open") {
    f.fail(*map.find("flavour"), "flavour must be open or proprietary");
  }
  d.flavour = flavour == "open" ? Flavour::Open : Flavour::Proprietary;
  f.u32("nvml_major", d.nvml_major).text("build", d.build).text("compiler", d.compiler);
  f.text("srcversion", d.srcversion).text("library_directory", d.library_directory);
  f.text("cuda_library_directory", d.cuda_library_directory);
  f.text("library32_directory", d.library32_directory).text("binary_directory", d.binary_directory);
  f.text("firmware_directory", d.firmware_directory).text("share_directory", d.share_directory);
  f.text("module_directory", d.module_directory).text("link_directory", d.link_directory);
  f.text("etc_directory", d.etc_directory);
  f.texts("link_skip", d.link_skip).texts("libraries", d.libraries);
  f.texts("libraries32", d.libraries32).texts("dev_links", d.dev_links);
  f.texts("binaries", d.binaries).texts("firmware", d.firmware);
  f.texts("kernel_objects", d.kernel_objects).flag("module_signed", d.module_signed);
  f.pairs("params", d.params).flag("module_unload", d.module_unload);
  f.u32("nvidia_major", d.nvidia_major, 4095).u32("uvm_major", d.uvm_major, 4095);
  f.u32("caps_major", d.caps_major, 4095).u32("imex_major", d.imex_major, 4095);
  f.u32("nvswitch_major", d.nvswitch_major, 4095).u32("nvlink_major", d.nvlink_major, 4095);
  f.flag("persistenced", d.persistenced)
      .flag("gridd", d.gridd)
      .text("vgpu_framework", d.vgpu_framework)
      .i32("fabric_manager", d.fabric_manager);
  f.pairs("fields", d.fields);
  if (!d.vgpu_framework.empty() && d.vgpu_framework != "mdev" && d.vgpu_framework != "vendor")
    f.fail(*map.find("vgpu_framework"), "vgpu_framework must be mdev or vendor");
  for (const auto& item : f.list("modules")) {
    (void)f.take(decode_module(item, d.modules.emplace_back()));
  }
  if (d.cuda_library_directory.empty()) d.cuda_library_directory = d.library_directory;
  return f.finish();
}

void decode_nodes(const YamlValue& map, NodeOptions& nodes, YamlFields& parent) {
  YamlFields f(map, "nodes");
  f.mode("mode", nodes.mode)
      .u32("uid", nodes.uid)
      .u32("gid", nodes.gid)
      .texts("missing", nodes.missing);
  for (const auto& item : f.list("others")) {
    YamlFields n(item, "node");
    ExtraNode& node = nodes.others.emplace_back();
    n.text("path", node.path).text("device", node.device).mode("mode", node.mode);
    n.u32("major", node.major, 4095).u32("minor", node.minor);
    if (!node.path.starts_with("/dev/")) n.fail(item, "a node's path must be below /dev");
    (void)f.take(n.finish());
  }
  (void)parent.take(f.finish());
}

void decode_lists(YamlFields& f, Machine& m) {
  for (const auto& item : f.list("numa")) {
    YamlFields n(item, "numa node");
    NumaNode& node = m.numa.emplace_back();
    n.text("cpus", node.cpus).u64("memory_mib", node.memory_mib);
    (void)f.take(n.finish());
  }
  for (const auto& item : f.list("gpus")) (void)f.take(decode_gpu(item, m.gpus.emplace_back()));
  for (const auto& item : f.list("pci")) (void)f.take(decode_pci(item, m.pci.emplace_back()));
  for (const auto& item : f.list("libraries")) {
    YamlFields l(item, "libraries");
    LibraryGroup& group = m.libraries.emplace_back();
    l.text("directory", group.directory)
        .texts("names", group.names)
        .flag("dev_links", group.dev_links);
    (void)f.take(l.finish());
  }
}

// A BAR without an address gets one: a terabyte for each bus, small BARs after the large ones.
void place_bars(PciFunction& p) {
  for (std::size_t i = 0; i < p.bars.size(); ++i) {
    Bar& bar = p.bars[i];
    if (bar.size == 0 || bar.start != 0) continue;
    bar.start = (0x38ULL + p.address.bus) << 40U;
    if (i == 0 || i >= 3) bar.start += (1ULL << 39U) + (i << 36U);
  }
}

}  // namespace

Status decode_pci(const YamlValue& map, PciFunction& p) {
  YamlFields f(map, "pci function");
  f.address("address", p.address).address("parent", p.parent);
  f.u32("vendor", p.vendor, 0xffff).u32("device", p.device, 0xffff);
  f.u32("subsystem_vendor", p.subsystem_vendor, 0xffff);
  f.u32("subsystem_device", p.subsystem_device, 0xffff);
  f.u32("class", p.class_code, 0xffffff).u32("revision", p.revision, 0xff);
  f.u32("chip_id", p.chip_id);
  f.text("driver", p.driver).text("driver_override", p.driver_override);
  f.i32("numa_node", p.numa_node).number("iommu_group", p.iommu_group).u32("irq", p.irq);
  f.u32("link_gen", p.link_gen, 7).u32("link_width", p.link_width, 32);
  p.link_gen_max = p.link_gen;
  p.link_width_max = p.link_width;
  f.u32("link_gen_max", p.link_gen_max, 7).u32("link_width_max", p.link_width_max, 32);
  f.text("serial_number", p.serial).text("reset_method", p.reset_method);
  f.text("firmware_node", p.firmware_node);
  f.text("power_state", p.power_state).u32("dma_bits", p.dma_bits, 64);
  f.flag("config_unreadable", p.config_unreadable).number("drm_card", p.drm_card);
  f.u32("vfs", p.vfs, kMaxVfs).u32("vf_device", p.vf_device, 0xffff);
  f.u32("vf_offset", p.vf_offset, 8).u32("vf_stride", p.vf_stride, 1);
  if (p.vfs != 0 && p.vf_device == 0) f.fail(map, "a function with vfs needs a vf_device");
  for (const auto& item : f.list("bars")) {
    YamlFields b(item, "bar");
    Bar& bar = p.bars.emplace_back();
    b.u64("start", bar.start).u64("size", bar.size).u64("flags", bar.flags);
    (void)f.take(b.finish());
  }
  if (p.bars.size() > 6) f.fail(map, "a PCI function has at most 6 BARs");
  place_bars(p);
  return f.finish();
}

Result<Machine> decode_machine(const YamlValue& root) {
  Machine m;
  YamlFields f(root, "machine");
  f.text("name", m.name).text("description", m.description).text("hostname", m.hostname);
  f.text("boot_id", m.boot_id).text("os_release", m.os_release).text("cmdline", m.cmdline);
  f.text("kernel_release", m.kernel_release).text("kernel_version", m.kernel_version);
  f.text("cpu_model", m.cpu_model)
      .text("cpu_vendor", m.cpu_vendor)
      .flag("hypervisor", m.hypervisor);
  f.flag("merged_usr", m.merged_usr).flag("efi", m.efi).flag("secure_boot", m.secure_boot);
  f.text("healthy", m.healthy)
      .text("lockdown", m.lockdown)
      .flag("iommu", m.iommu)
      .pairs("dmi", m.dmi);
  f.texts("ld_so_conf", m.ld_so_conf)
      .pairs("files", m.files)
      .pairs("links", m.links)
      .texts("absent", m.absent);
  if (const auto* driver = f.child("driver")) (void)f.take(decode_driver(*driver, m.driver));
  if (const auto* nodes = f.child("nodes")) decode_nodes(*nodes, m.nodes, f);
  decode_lists(f, m);
  if (m.pci.size() > kMaxPciFunctions) f.fail(root, "too many PCI functions");
  if (m.numa.size() > kMaxNumaNodes) f.fail(root, "too many NUMA nodes");
  GANTRY_CHECK(f.finish());
  GANTRY_CHECK(check_machine(m, root));
  return m;
}

}  // namespace gantry::sim
