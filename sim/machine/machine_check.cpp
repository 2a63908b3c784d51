// SPDX-License-Identifier: Apache-2.0
// Checks across keys: whether the values are consistent and fit into the image.
#include "sim/driver/image.h"
#include "sim/machine/machine_internal.hpp"
#include "sim/machine/topology.hpp"

#include <fmt/format.h>

#include <set>

namespace gantry::sim {
namespace {

Error wrong(const YamlValue& root, std::string_view why) {
  return Error(Errc::Corrupt, fmt::format("{}: {}", root.file ? *root.file : "machine", why));
}

Status fits(const YamlValue& root, std::string_view what, std::string_view text, std::size_t room) {
  if (text.size() < room) return {};
  return wrong(root, fmt::format("{} is longer than {} characters", what, room - 1));
}

Status check_texts(const YamlValue& root, const Machine& m) {
  const gantry_sim_machine* none = nullptr;
  const gantry_sim_gpu* gpu = nullptr;
  GANTRY_CHECK(fits(root, "name", m.name, sizeof none->name));
  GANTRY_CHECK(fits(root, "driver.version", m.driver.version, sizeof none->driver_version));
  GANTRY_CHECK(
      fits(root, "driver.module_version", m.driver.module_version, sizeof none->kernel_version));
  GANTRY_CHECK(fits(root, "driver.library_directory", m.driver.library_directory,
                    sizeof none->library_directory));
  for (const auto& g : m.gpus) {
    GANTRY_CHECK(fits(root, "uuid", g.uuid, sizeof gpu->uuid));
    GANTRY_CHECK(fits(root, "name", g.name, sizeof gpu->name));
    for (const auto& text :
         {g.brand, g.architecture, g.vbios, g.serial, g.board_part, g.gpu_part, g.inforom_image}) {
      GANTRY_CHECK(fits(root, fmt::format("\"{}\"", text), text, sizeof gpu->brand));
    }
    for (const auto& text : {g.inforom_oem, g.inforom_ecc, g.inforom_power}) {
      GANTRY_CHECK(fits(root, fmt::format("\"{}\"", text), text, sizeof gpu->inforom_oem));
    }
    GANTRY_CHECK(fits(root, "virtualization", g.virtualization, sizeof gpu->virtualization));
    for (const auto& p : g.mig_profiles) GANTRY_CHECK(fits(root, "profile", p.name, 24));
  }
  return {};
}

Status check_fields(const YamlValue& root, const Machine& m) {
  std::size_t count = m.driver.fields.size();
  auto one = [&](const KeyValues& fields) -> Status {
    for (const auto& [name, value] : fields) {
      GANTRY_CHECK(
          fits(root, fmt::format("field name \"{}\"", name), name, sizeof(gantry_sim_field::name)));
      GANTRY_CHECK(
          fits(root, fmt::format("field \"{}\"", name), value, sizeof(gantry_sim_field::value)));
    }
    return {};
  };
  GANTRY_CHECK(one(m.driver.fields));
  for (const auto& gpu : m.gpus) {
    GANTRY_CHECK(one(gpu.fields));
    count += gpu.fields.size();
  }
  if (count <= GANTRY_SIM_MAX_FIELDS) return {};
  return wrong(root,
               fmt::format("has {} fields; at most {} are allowed", count, GANTRY_SIM_MAX_FIELDS));
}

Status check_gpus(const YamlValue& root, const Machine& m) {
  if (m.gpus.size() > GANTRY_SIM_MAX_GPUS) {
    return wrong(root, fmt::format("has {} GPUs; at most {} are allowed", m.gpus.size(),
                                   GANTRY_SIM_MAX_GPUS));
  }
  std::set<std::string> uuids;
  std::set<std::uint32_t> minors;
  for (const auto& gpu : m.gpus) {
    if (gpu.name.empty() || gpu.uuid.empty())
      return wrong(root, "each GPU needs a name and a uuid");
    if (!uuids.insert(gpu.uuid).second)
      return wrong(root, fmt::format("two GPUs have uuid {}", gpu.uuid));
    if (!minors.insert(gpu.minor).second) {
      return wrong(root, fmt::format("two GPUs have minor {}", gpu.minor));
    }
    if (gpu.mig_profiles.size() > GANTRY_SIM_MAX_MIG_PROFILES)
      return wrong(root, "too many MIG profiles");
    if (gpu.memory_reserved_mib > gpu.memory_total_mib) {
      return wrong(root, fmt::format("{} reserves more memory than it has", gpu.name));
    }
    for (const auto& link : gpu.nvlinks) {
      if (!link.to_switch && link.gpu >= m.gpus.size()) {
        return wrong(root,
                     fmt::format("an NVLink leads to GPU {}, which does not exist", link.gpu));
      }
    }
  }
  return {};
}

// Every parent must exist, without a loop.
Status check_bridges(const YamlValue& root, const Machine& m) {
  std::set<model::PciAddress> addresses;
  for (const auto* function : pci_functions(m)) {
    if (!addresses.insert(function->address).second) {
      return wrong(root, fmt::format("two PCI functions are at {}", function->address.sysfs()));
    }
  }
  for (const auto* function : pci_functions(m)) {
    if (function->parent && addresses.count(*function->parent) == 0) {
      return wrong(root, fmt::format("{} is behind {}, which does not exist",
                                     function->address.sysfs(), function->parent->sysfs()));
    }
    if (bridges_above(m, *function).size() > kMaxBridges) {
      return wrong(root,
                   fmt::format("{} is behind more than {} bridges, or the bridges form a loop",
                               function->address.sysfs(), kMaxBridges));
    }
  }
  return {};
}

}  // namespace

Status check_machine(const Machine& machine, const YamlValue& root) {
  GANTRY_CHECK(check_gpus(root, machine));
  GANTRY_CHECK(check_texts(root, machine));
  GANTRY_CHECK(check_fields(root, machine));
  GANTRY_CHECK(check_bridges(root, machine));
  for (const auto& node : machine.numa) {
    if (!parse_cpu_list(node.cpus)) {
      return wrong(root, fmt::format("\"{}\" is not a list of CPUs such as 0-15,32-47", node.cpus));
    }
  }
  // Checked last, so that errors in the keys above are reported first.
  if (machine.gpus.empty() && root.find("gpus") == nullptr) {
    return wrong(root, "has no gpus: list them, or write `gpus: []` for a machine without any");
  }
  return {};
}

}  // namespace gantry::sim
