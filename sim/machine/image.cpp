// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/image.hpp"

#include "base/core/text.hpp"
#include "sim/machine/mig.hpp"
#include "sim/machine/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace gantry::sim {
namespace {

// The lengths were checked when the machine was read; this only guarantees the NUL.
template <std::size_t N>
void put(char (&out)[N], std::string_view text) {
  const auto length = std::min(text.size(), N - 1);
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
}

struct Word {
  std::string_view text;
  std::uint32_t number;
};

std::uint32_t brand_number(std::string_view brand) {
  constexpr Word kBrands[] = {
      {"Quadro", 1},   {"Tesla", 2},       {"NVS", 3},         {"GRID", 4},   {"GeForce", 5},
      {"Titan", 6},    {"vApps", 7},       {"vPC", 8},         {"vCS", 9},    {"vWS", 10},
      {"vGaming", 11}, {"Quadro RTX", 12}, {"NVIDIA RTX", 13}, {"NVIDIA", 14}};
  for (const auto& word : kBrands) {
    if (word.text == brand) return word.number;
  }
  return 0;
}

std::uint32_t architecture_number(std::string_view name) {
  constexpr Word kNames[] = {{"Kepler", 2}, {"Maxwell", 3},   {"Pascal", 4}, {"Volta", 5},
                             {"Turing", 6}, {"Ampere", 7},    {"Ada", 8},    {"Ada Lovelace", 8},
                             {"Hopper", 9}, {"Blackwell", 10}};
  for (const auto& word : kNames) {
    if (word.text == name) return word.number;
  }
  return UINT32_MAX;
}

void put_profiles(const Gpu& from, gantry_sim_gpu& to) {
  to.mig_profile_count = static_cast<std::uint32_t>(from.mig_profiles.size());
  for (std::size_t i = 0; i < from.mig_profiles.size(); ++i) {
    const MigProfile& p = from.mig_profiles[i];
    gantry_sim_mig_profile& out = to.mig_profile[i];
    put(out.name, p.name);
    out.nvml_profile = p.nvml_profile;
    out.id = p.id;
    out.slices = p.slices;
    out.memory_slices = p.memory_slices;
    out.instances = p.instances;
    out.memory_mib = p.memory_mib;
    out.multiprocessors = p.multiprocessors;
    out.copy_engines = p.copy_engines;
    out.decoders = p.decoders;
    out.encoders = p.encoders;
    out.jpegs = p.jpegs;
    out.ofas = p.ofas;
    out.placement_count = static_cast<std::uint32_t>(p.placements.size());
    std::copy(p.placements.begin(), p.placements.end(), out.placement_start);
  }
}

void put_links(const Machine& machine, const Gpu& from, gantry_sim_gpu& to) {
  to.nvlink_count = static_cast<std::uint32_t>(from.nvlinks.size());
  for (std::size_t i = 0; i < from.nvlinks.size(); ++i) {
    const NvLink& link = from.nvlinks[i];
    to.nvlink[i].remote_type = link.to_switch ? 2 : 0;
    to.nvlink[i].remote_gpu = link.gpu;
    put(to.nvlink[i].remote_bus_id,
        link.to_switch ? link.remote_bus_id : machine.gpus[link.gpu].pci.address.nvml());
  }
}

void put_identity(const Gpu& g, gantry_sim_gpu& out) {
  put(out.uuid, g.uuid);
  put(out.name, g.name);
  put(out.brand, g.brand);
  put(out.architecture, g.architecture);
  put(out.vbios, g.vbios);
  put(out.serial, g.serial);
  put(out.board_part, g.board_part);
  put(out.gpu_part, g.gpu_part);
  put(out.inforom_image, g.inforom_image);
  put(out.inforom_oem, g.inforom_oem);
  put(out.inforom_ecc, g.inforom_ecc);
  put(out.inforom_power, g.inforom_power);
  put(out.virtualization, g.virtualization);
  out.pdi = g.pdi;
  out.nvml_brand = brand_number(g.brand);
  out.nvml_architecture = architecture_number(g.architecture);
  out.domain = g.pci.address.domain;
  out.bus = g.pci.address.bus;
  out.device = g.pci.address.device;
  out.function = g.pci.address.function;
  out.pci_id = g.pci.device << 16U | g.pci.vendor;
  out.pci_subsystem = g.pci.subsystem_device << 16U | g.pci.subsystem_vendor;
  out.pci_class = g.pci.class_code;
  out.pcie_gen_max = g.pcie_gen_max != 0 ? g.pcie_gen_max : g.pci.link_gen_max;
  out.pcie_width_max = g.pcie_width_max != 0 ? g.pcie_width_max : g.pci.link_width_max;
  out.minor = g.minor;
  out.board_id = g.board_id;
  out.module_id = g.module_id;
  out.numa_node = g.pci.numa_node;
}

void put_capacity(const Gpu& g, gantry_sim_gpu& out) {
  out.cc_major = g.cc_major;
  out.cc_minor = g.cc_minor;
  out.multiprocessors = g.multiprocessors;
  out.cores = g.cores;
  out.memory_total_mib = g.memory_total_mib;
  out.memory_reserved_mib = g.memory_reserved_mib;
  out.bar1_mib = g.bar1_mib;
  out.memory_bus_bits = g.memory_bus_bits;
  out.l2_cache_bytes = g.l2_cache_bytes;
  out.clock_graphics_max = g.clock_graphics_max;
  out.clock_sm_max = g.clock_sm_max;
  out.clock_memory_max = g.clock_memory_max;
  out.clock_video_max = g.clock_video_max;
  out.clock_graphics = g.clock_graphics;
  out.clock_sm = g.clock_sm;
  out.clock_memory = g.clock_memory;
  out.clock_video = g.clock_video;
  out.power_limit_mw = g.power_limit_mw;
  out.power_min_mw = g.power_min_mw;
  out.power_max_mw = g.power_max_mw;
  out.temperature_slowdown = g.temperature_slowdown;
  out.temperature_shutdown = g.temperature_shutdown;
  out.temperature_max = g.temperature_max;
  out.ecc_supported = g.ecc ? 1 : 0;
  out.display_active = g.display_active ? 1 : 0;
  out.display_attached = g.display_attached ? 1 : 0;
  out.mig_capable = g.mig_capable ? 1 : 0;
  out.mig_enabled_at_boot = g.mig_enabled ? 1 : 0;
  out.gsp = g.gsp ? 1 : 0;
  out.excluded = g.excluded ? 1 : 0;
  out.fan_percent = g.fan_percent;
}

Status put_state(const Gpu& g, const gantry_sim_gpu& gpu, gantry_sim_gpu_state& out,
                 std::uint32_t major) {
  out.lost = g.lost ? 1 : 0;
  out.reset_required = g.reset_required ? 1 : 0;
  out.temperature = g.temperature;
  out.memory_temperature = g.memory_temperature;
  out.power_mw = g.power_mw;
  out.power_average_mw = g.power_average_mw;
  out.utilization_gpu = g.utilization_gpu;
  out.utilization_memory = g.utilization_memory;
  out.pstate = g.pstate;
  out.ecc_corrected_volatile = out.ecc_corrected_aggregate = g.ecc_corrected;
  out.ecc_uncorrected_volatile = out.ecc_uncorrected_aggregate = g.ecc_uncorrected;
  out.remap_pending = g.remap_pending ? 1 : 0;
  out.remap_failure = g.remap_failure ? 1 : 0;
  out.recovery_action = g.recovery_action;
  out.clocks_event_reasons = g.clocks_event_reasons;
  out.persistence = g.persistence ? 1 : 0;
  out.compute_mode = static_cast<std::uint32_t>(g.compute_mode);
  out.power_limit_mw = g.power_limit_mw;
  out.mig_current = out.mig_pending = g.mig_enabled ? 1 : 0;
  for (const auto& request : g.mig) {
    GANTRY_CHECK(add_mig_instance(gpu, out, request, major).in(fmt::format("GPU {}", g.uuid)));
  }
  return {};
}

void put_fields(gantry_sim_machine& out, std::int32_t gpu, const KeyValues& fields) {
  for (const auto& [name, value] : fields) {
    if (out.field_count >= GANTRY_SIM_MAX_FIELDS) return;
    gantry_sim_field& field = out.field[out.field_count++];
    field.gpu = gpu;
    put(field.name, name);
    put(field.value, value);
  }
}

void put_machine(const Machine& m, gantry_sim_machine& out) {
  put(out.name, m.name);
  put(out.driver_version, m.driver.version);
  put(out.kernel_version, m.driver.module_version);
  out.cuda_version = m.driver.cuda;
  out.nvml_version_major = m.driver.nvml_major;
  put(out.library_directory, m.driver.library_directory);
  out.nvidia_major = m.driver.nvidia_major;
  out.uvm_major = m.driver.uvm_major;
  out.caps_major = m.driver.caps_major;
  out.gpu_count = static_cast<std::uint32_t>(m.gpus.size());
  out.fabric_manager = m.driver.fabric_manager;
  put_fields(out, -1, m.driver.fields);
}

}  // namespace

Result<Image> make_image(const Machine& machine) {
  GANTRY_ASSERT(machine.gpus.size() <= GANTRY_SIM_MAX_GPUS);
  auto image = std::make_unique<gantry_sim_image>();
  put(image->magic, GANTRY_SIM_MAGIC);
  image->abi = GANTRY_SIM_ABI;
  image->size = sizeof(gantry_sim_image);
  put_machine(machine, image->machine);
  image->state.driver_unloaded = machine.driver.module_version.empty() ? 1 : 0;
  const auto major = driver_major(machine.driver.version);
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    const Gpu& gpu = machine.gpus[i];
    gantry_sim_gpu& out = image->machine.gpu[i];
    put_identity(gpu, out);
    put_capacity(gpu, out);
    put_profiles(gpu, out);
    put_links(machine, gpu, out);
    put_fields(image->machine, static_cast<std::int32_t>(i), gpu.fields);
    GANTRY_CHECK(put_state(gpu, out, image->state.gpu[i], major));
    for (std::size_t j = 0; j < machine.gpus.size(); ++j) {
      image->machine.topology[i][j] =
          i == j ? 0 : topology_level(machine, gpu.pci, machine.gpus[j].pci);
    }
  }
  return image;
}

std::string append_image(std::string_view library, const gantry_sim_image& image) {
  std::string file(library);
  file.resize((file.size() + kImageAlignment - 1) / kImageAlignment * kImageAlignment, '\0');
  const gantry_sim_footer footer{.image_offset = file.size(), .magic = GANTRY_SIM_FOOTER_MAGIC};
  file.append(reinterpret_cast<const char*>(&image), sizeof image);
  file.append(reinterpret_cast<const char*>(&footer), sizeof footer);
  return file;
}

Result<Image> find_image(std::string_view file) {
  auto damaged = [] {
    return Error(Errc::Corrupt,
                 "contains no simulated machine; create the tree again with `gantry sim create`");
  };
  gantry_sim_footer footer{};
  if (file.size() < sizeof footer) return damaged();
  std::memcpy(&footer, file.data() + file.size() - sizeof footer, sizeof footer);
  if (footer.magic != GANTRY_SIM_FOOTER_MAGIC || footer.image_offset % kImageAlignment != 0 ||
      footer.image_offset > file.size() ||
      file.size() - footer.image_offset != sizeof(gantry_sim_image) + sizeof footer) {
    return damaged();
  }
  auto image = std::make_unique<gantry_sim_image>();
  std::memcpy(image.get(), file.data() + footer.image_offset, sizeof *image);
  if (std::memcmp(image->magic, GANTRY_SIM_MAGIC, sizeof image->magic) != 0 ||
      image->abi != GANTRY_SIM_ABI || image->size != sizeof *image ||
      image->machine.gpu_count > GANTRY_SIM_MAX_GPUS) {
    return damaged();
  }
  return image;
}

std::uint32_t driver_major(std::string_view version) {
  return static_cast<std::uint32_t>(parse_u64(version.substr(0, version.find('.'))).value_or(0));
}

}  // namespace gantry::sim
