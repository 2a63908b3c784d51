// SPDX-License-Identifier: Apache-2.0
// Reads whole GPUs without NVML, from /proc/driver/nvidia and sysfs. It works while NVML hangs and
// before device nodes exist, and costs a few file reads.
#pragma once

#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"
#include "gpu/probe/pci.hpp"

#include <string>
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
  // GPUs whose information file lacks lines that every driver writes: it is damaged, or not from
  // the driver.
  std::vector<model::PciAddress> incomplete;
  bool silent = false;  // the driver did not answer in time: of some GPUs only the address is known
  std::vector<std::string> notes;
};

// Loaded means: /sys/module/nvidia exists, its initstate, if it has one, is live, and
// /proc/driver/nvidia/version can be read. It does not use refcnt, which kernels without module
// unload do not have.
DriverModule read_driver_module(const sys::Host& host);

// `scan` provides NUMA node, CPUs and ids of the GPUs. Health is Unknown, or Lost if the
// configuration space reads all ones.
KernelView read_kernel_view(const sys::Host& host, DriverModule module, const PciScan& scan);

}  // namespace gantry::probe
