// SPDX-License-Identifier: Apache-2.0
// Decides whether GPUs can be passed through, and what would have to be done. Values in, values
// out: it reads and writes nothing.
#pragma once

#include "vm/vfio/machine_state.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::vfio {

struct PassthroughRequest {
  std::vector<model::PciAddress> targets;
  bool with_nvswitches = false;  // all NVSwitches too: a whole HGX board for one machine
};

enum class Severity : std::uint8_t {
  Blocker,  // cannot be passed through
  InUse,    // cannot be passed through now; waiting for the end of the process helps
  Warning
};
std::string_view to_string(Severity severity);  // "in-use"

// Stable names, for programs.
enum class FindingCode : std::uint8_t {
  Gone,
  NotNvidia,
  VendorVfio,
  NoFirmwareIommu,
  NoKernelIommu,
  GuestWithoutIommu,
  NotBehindIommu,
  NoInterruptRemapping,
  UnsafeInterrupts,
  NoDriverOverride,
  NoVfioModule,
  GroupNotViable,
  Display,
  MigInstances,
  MigMode,
  VfsEnabled,
  HasVgpus,
  Unfinished,
  Stuck,
  InUse,
  NoReset,
  BusReset,
  DeadConfig,
  WideDomain,
  DriverOpen
};
std::string_view to_string(FindingCode code);  // "group-not-viable"

struct Finding {
  Severity severity = Severity::Blocker;
  FindingCode code = FindingCode::Gone;
  model::PciAddress address;
  std::string text;    // a sentence without its full stop
  std::string remedy;  // a command, or a sentence that says what to do; may be ""
  bool operator==(const Finding&) const = default;
};

struct PlannedFunction {
  model::PciAddress address;
  model::PciAddress target;  // the GPU or NVSwitch that it belongs to
  pci::Kind kind = pci::Kind::Other;
  pci::CardId id;
  std::optional<int> group;
  std::string driver;     // now; "" if none
  std::string override_;  // now; "" if none
  std::string module;     // of the vfio driver that it gets
  std::string to_driver;  // the driver's name, as far as it is known before the module is loaded
  bool done() const;      // it has that driver already
  bool operator==(const PlannedFunction&) const = default;
};

struct Plan {
  std::vector<model::PciAddress> targets;
  std::vector<PlannedFunction> functions;  // the GPU after its sound and USB functions
  std::vector<int> groups;
  std::vector<Finding> findings;
  std::vector<Holder> holders;                 // that must end before
  std::vector<std::string> services;           // that have a GPU open and are stopped meanwhile
  std::vector<model::PciAddress> persistence;  // GPUs that nvidia-persistenced keeps open
  std::vector<std::string> nodes;              // that must have no holder

  bool blocked() const;   // there is a Blocker
  bool in_use() const;    // there is a process to wait for
  bool complete() const;  // all functions have their driver already
};

Plan plan_passthrough(const MachineState& state, const PassthroughRequest& request);

// The functions that go together with a GPU: all functions of its slot, every function that a
// device link names as its consumer, and the consumers of those. Functions before the GPU itself.
std::vector<const pci::Function*> functions_of_card(const pci::Bus& bus,
                                                    const model::PciAddress& target);

// Members of the group that keep VFIO from using it: a driver of the host holds them.
std::vector<const pci::Function*> blocking_members(const pci::Bus& bus, int group,
                                                   const std::vector<model::PciAddress>& bound);

// Holders that Gantry itself can stop: they only watch or keep GPUs. Its own NVML processes, of the
// agent and the share daemon, end when the owner of the GPU changes.
bool is_own_sensor(const Holder& holder);
bool is_persistence_daemon(const Holder& holder);
bool is_dcgm_service(const Holder& holder);

}  // namespace gantry::vfio
