// SPDX-License-Identifier: Apache-2.0
// The file of NVIDIA's mig-parted, version v1, as YAML or JSON: named configurations for the GPUs
// of a machine.
//
// Its entries name GPUs by their index in the order of PCI addresses. A later entry wins over an
// earlier one that names the same GPU. A GPU that no entry names is left alone.
#pragma once

#include "base/core/result.hpp"
#include "gpu/mig/layout.hpp"
#include "gpu/mig/mig_gpu.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::mig {

struct ConfigEntry {
  std::vector<std::string> device_filter = {};  // "0x233510DE"; empty: every model
  bool all_devices = false;
  std::vector<unsigned> devices = {};  // unless all_devices
  bool enabled = false;
  ProfileCounts counts = {};  // mig-devices
  int line = 0;
  bool operator==(const ConfigEntry&) const = default;
};

using ConfigEntries = std::vector<ConfigEntry>;

struct MigConfigFile {
  std::string file;  // for messages
  std::map<std::string, ConfigEntries> configs;
};

// Unknown fields, missing fields, wrong types, other versions and names that are not those of
// profiles are errors with file and line.
Result<MigConfigFile> parse_config(std::string_view text, std::string_view file);

// The configuration with this name; "" stands for the only one. NotFound if there is none, Invalid
// if "" could mean several.
Result<const ConfigEntries*> find_config(const MigConfigFile& config, std::string_view name);

struct SelectedLayout {
  std::size_t gpu = 0;  // position in the list of GPUs
  LayoutRequest request;
  int line = 0;  // of the entry
};

struct Selection {
  std::vector<SelectedLayout> layouts;  // in the order of PCI addresses
  std::vector<std::string> notes;       // parts of the configuration that mean no GPU
};

// What the configuration asks of each GPU. `gpus` are all NVIDIA GPUs of the machine, also those
// without MIG: the indexes count them. A GPU without MIG is skipped by `devices: all`; Unsupported
// if an entry names it and wants MIG.
Result<Selection> select_config(const MigConfigFile& config, std::string_view name,
                                const std::vector<MigGpu>& gpus);

// Positions of the GPUs in the order of their PCI addresses.
std::vector<std::size_t> pci_order(const std::vector<MigGpu>& gpus);

// "0x233510DE"
std::string device_filter_of(const MigGpu& gpu);

}  // namespace gantry::mig
