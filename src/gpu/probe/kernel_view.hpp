// SPDX-License-Identifier: Apache-2.0
// Full GPUs without NVML: what /proc/driver/nvidia and sysfs say. It works while NVML hangs, before
// device nodes exist, and costs a few file reads.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"
#include "gpu/probe/pci.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::probe {

struct DriverModule {
  bool loaded = false;
  std::string why_not;  // one sentence when it is not loaded
  std::string version;
  model::ModuleFlavour flavour = model::ModuleFlavour::Unknown;
};

struct KernelView {
  DriverModule module;
  std::vector<model::Gpu> gpus;  // the nvidia driver's, without excluded ones, by PCI address
  std::vector<model::PciAddress> excluded;  // NVreg_ExcludedGpus
  // Their information file lacks what every driver writes there: damaged, or not the driver's.
  std::vector<model::PciAddress> incomplete;
  std::vector<std::string> notes;
};

// Loaded means: /sys/module/nvidia is there, its initstate (where there is one) is live and
// /proc/driver/nvidia/version can be read. Never refcnt: kernels without module unload have none.
DriverModule read_driver_module(const sys::Host& host);

// `scan` gives NUMA node, CPUs and ids of the GPUs found. Health is Unknown, or Lost where the
// configuration space reads all ones.
KernelView read_kernel_view(const sys::Host& host, DriverModule module, const PciScan& scan);

// The parsers, for tests and fuzzing. All take any bytes.
struct VersionFile {
  std::string version;  // "" when the NVRM line has none
  model::ModuleFlavour flavour = model::ModuleFlavour::Unknown;
};
VersionFile parse_version_file(std::string_view text);

struct InformationFile {
  model::Gpu gpu;  // name, uuid, minor, vbios, gsp_firmware
  bool excluded = false;
  std::vector<std::string_view> missing;  // lines that every driver writes and this file lacks
};
InformationFile parse_information_file(std::string_view text);

}  // namespace gantry::probe
