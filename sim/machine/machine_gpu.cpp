// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "sim/driver/image.h"
#include "sim/machine/machine_internal.hpp"
#include "sim/machine/yaml_fields_internal.hpp"

#include <fmt/format.h>

namespace gantry::sim {
namespace {

constexpr std::size_t kMaxVgpuTypes = 16;

constexpr std::uint32_t kMaxMemorySlices = 16;

Status decode_profile(const YamlValue& map, MigProfile& p) {
  YamlFields f(map, "MIG profile");
  f.text("name", p.name).u32("nvml_profile", p.nvml_profile, 64).u32("id", p.id);
  f.u32("slices", p.slices, 8).u32("memory_slices", p.memory_slices, kMaxMemorySlices);
  f.u32("instances", p.instances, GANTRY_SIM_MAX_MIG_INSTANCES).u32("memory_mib", p.memory_mib);
  f.u32("multiprocessors", p.multiprocessors).u32("copy_engines", p.copy_engines);
  f.u32("decoders", p.decoders)
      .u32("encoders", p.encoders)
      .u32("jpegs", p.jpegs)
      .u32("ofas", p.ofas);
  f.numbers("placements", p.placements);
  if (p.placements.empty() || p.placements.size() > 8)
    f.fail(map, "placements must name 1 to 8 starts");
  for (const auto start : p.placements) {
    if (start + p.memory_slices > kMaxMemorySlices)
      f.fail(map, "a placement ends after memory slice 16");
  }
  return f.finish();
}

Status decode_vgpu_type(const YamlValue& map, VgpuType& type) {
  constexpr std::size_t kLongestName = 63;  // of the simulated kernel module
  YamlFields f(map, "vgpu_types");
  f.u32("id", type.id).text("name", type.name).u32("memory_mib", type.memory_mib);
  if (type.name.empty() || type.name.size() > kLongestName || type.memory_mib == 0)
    f.fail(map, "a vGPU type needs a name of at most 63 characters and memory_mib");
  return f.finish();
}

// `count: 3` repeats a link, because eighteen equal lines are hard to read.
void decode_link(const YamlValue& map, Gpu& gpu, YamlFields& parent) {
  YamlFields f(map, "nvlink");
  NvLink link;
  std::uint32_t count = 1;
  std::optional<std::uint32_t> other;
  std::optional<model::PciAddress> bus_id;
  f.number("gpu", other).address("switch", bus_id).u32("count", count, GANTRY_SIM_MAX_LINKS);
  if (other.has_value() == bus_id.has_value()) f.fail(map, "an nvlink needs one of: gpu, switch");
  link.to_switch = !other.has_value();
  link.gpu = other.value_or(0);
  if (bus_id) link.remote_bus_id = bus_id->nvml();
  if (gpu.nvlinks.size() + count > GANTRY_SIM_MAX_LINKS) {
    f.fail(map, fmt::format("a GPU has at most {} NVLinks", GANTRY_SIM_MAX_LINKS));
    count = 0;
  }
  gpu.nvlinks.insert(gpu.nvlinks.end(), count, link);
  (void)parent.take(f.finish());
}

void decode_what_it_is(YamlFields& f, Gpu& g) {
  f.text("uuid", g.uuid).text("name", g.name).text("brand", g.brand);
  f.text("architecture", g.architecture).text("vbios", g.vbios).text("serial", g.serial);
  f.text("board_part", g.board_part).text("gpu_part", g.gpu_part);
  f.text("inforom_image", g.inforom_image).text("inforom_oem", g.inforom_oem);
  f.text("inforom_ecc", g.inforom_ecc).text("inforom_power", g.inforom_power);
  f.text("virtualization", g.virtualization).u64("pdi", g.pdi).u32("minor", g.minor, 254);
  f.u32("board_id", g.board_id).u32("module_id", g.module_id);
  f.u32("pcie_gen_max", g.pcie_gen_max, 7).u32("pcie_width_max", g.pcie_width_max, 32);
  f.u32("cc_major", g.cc_major, 99).u32("cc_minor", g.cc_minor, 99);
  f.u32("multiprocessors", g.multiprocessors).u32("cores", g.cores);
  f.u32("memory_total_mib", g.memory_total_mib).u32("memory_reserved_mib", g.memory_reserved_mib);
  f.u32("bar1_mib", g.bar1_mib).u32("memory_bus_bits", g.memory_bus_bits);
  f.u32("l2_cache_bytes", g.l2_cache_bytes);
  f.u32("clock_graphics_max", g.clock_graphics_max).u32("clock_sm_max", g.clock_sm_max);
  f.u32("clock_memory_max", g.clock_memory_max).u32("clock_video_max", g.clock_video_max);
  f.i32("power_limit_mw", g.power_limit_mw).i32("power_min_mw", g.power_min_mw);
  f.i32("power_max_mw", g.power_max_mw).i32("temperature_slowdown", g.temperature_slowdown);
  f.i32("temperature_shutdown", g.temperature_shutdown).i32("temperature_max", g.temperature_max);
  f.flag("ecc", g.ecc).flag("mig_capable", g.mig_capable).flag("gsp", g.gsp);
}

void decode_how_it_is(YamlFields& f, Gpu& g) {
  f.u32("clock_graphics", g.clock_graphics).u32("clock_sm", g.clock_sm);
  f.u32("clock_memory", g.clock_memory).u32("clock_video", g.clock_video);
  f.flag("persistence", g.persistence).flag("display_active", g.display_active);
  f.flag("display_attached", g.display_attached).flag("mig_enabled", g.mig_enabled);
  f.flag("excluded", g.excluded).flag("lost", g.lost).i32("compute_mode", g.compute_mode);
  f.i32("fan_percent", g.fan_percent).i32("temperature", g.temperature);
  f.i32("memory_temperature", g.memory_temperature).i32("power_mw", g.power_mw);
  f.i32("power_average_mw", g.power_average_mw).u32("utilization_gpu", g.utilization_gpu, 100);
  f.u32("utilization_memory", g.utilization_memory, 100).u32("pstate", g.pstate, 15);
  f.u64("clocks_event_reasons", g.clocks_event_reasons).flag("reset_required", g.reset_required);
  f.flag("remap_pending", g.remap_pending).flag("remap_failure", g.remap_failure);
  f.u64("ecc_corrected", g.ecc_corrected).u64("ecc_uncorrected", g.ecc_uncorrected);
  f.u32("recovery_action", g.recovery_action, 8);
}

}  // namespace

Status decode_gpu(const YamlValue& map, Gpu& g) {
  YamlFields f(map, "gpu");
  decode_what_it_is(f, g);
  decode_how_it_is(f, g);
  f.pairs("fields", g.fields);
  if (const auto* pci = f.child("pci")) (void)f.take(decode_pci(*pci, g.pci));
  for (const auto& item : f.list("mig_profiles")) {
    (void)f.take(decode_profile(item, g.mig_profiles.emplace_back()));
  }
  for (const auto& item : f.list("nvlinks")) decode_link(item, g, f);
  for (const auto& item : f.list("vgpu_types")) {
    (void)f.take(decode_vgpu_type(item, g.vgpu_types.emplace_back()));
  }
  if (g.vgpu_types.size() > kMaxVgpuTypes) f.fail(map, "a GPU has at most 16 vGPU types");
  for (const auto& item : f.list("mig")) {
    if (auto request = parse_mig_request(item.text)) {
      g.mig.push_back(*request);
    } else {
      f.fail(item, "an instance is written PROFILE, PROFILE@START or PROFILE=1+2");
    }
  }
  return f.finish();
}

std::optional<MigRequest> parse_mig_request(std::string_view text) {
  MigRequest request;
  if (const auto equals = text.find('='); equals != std::string_view::npos) {
    for (const auto part : split(text.substr(equals + 1), '+')) {
      const auto slices = parse_u64(part);
      if (!slices || *slices == 0 || *slices > 8) return std::nullopt;
      request.compute_slices.push_back(static_cast<std::uint32_t>(*slices));
    }
    text = text.substr(0, equals);
  }
  if (const auto at = text.find('@'); at != std::string_view::npos) {
    const auto start = parse_u64(text.substr(at + 1));
    if (!start || *start > 7) return std::nullopt;
    request.placement = static_cast<std::uint32_t>(*start);
    text = text.substr(0, at);
  }
  if (text.empty()) return std::nullopt;
  request.profile = text;
  return request;
}

}  // namespace gantry::sim
