// SPDX-License-Identifier: Apache-2.0
// Joins `gantry vfio` with the ledger of owners: drivers change only while the GPU is leased, and
// the owner is recorded afterwards.
#pragma once

#include "gantry/command.hpp"
#include "gpu/ownership/ownership_state.hpp"
#include "vm/vfio/bind.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace gantry::cli {

struct VfioLease {
  std::vector<model::PciAddress> gpus;
  ownership::Owner to = ownership::Owner::Vm;  // Vm or Plugin
  std::string command;                         // "gantry vfio bind": what finishes it after a crash
  bool with_addresses = true;                  // the command names the GPU
  std::chrono::milliseconds wait{0};           // until pods, shares and processes have let go
  bool in_between = false;  // the GPUs are between two drivers: a process must not stop the repair
};

// Runs `act` as the owner of the GPUs, through the agent if one runs. Without GPUs it only runs
// `act`. If recover took its work back, the owner stays as it was.
Result<vfio::BindResult> with_vfio_lease(const sys::Host& host, const VfioLease& lease,
                                         Context& context,
                                         const std::function<Result<vfio::BindResult>()>& act);

// The GPUs that the ledger does not record as virtual machines', or whose change is unfinished.
Result<std::vector<model::PciAddress>> not_recorded_for_vms(
    const sys::Host& host, const std::vector<model::PciAddress>& gpus);

// The GPUs that the ledger knows to have another owner than virtual machines, or an unfinished
// change. A GPU that it does not know is not among them, and neither is any if it cannot be read:
// at boot, /var may not be mounted yet.
std::vector<model::PciAddress> recorded_for_others(const sys::Host& host,
                                                   const std::vector<model::PciAddress>& gpus);

// The GPUs that a release changes: their drivers, or only the record of a GPU that lost vfio-pci in
// another way, such as a reboot. Busy if a GPU has vGPUs.
Result<std::vector<model::PciAddress>> gpus_to_release(const sys::Host& host,
                                                       const vfio::Journal& journal);

}  // namespace gantry::cli
