// SPDX-License-Identifier: Apache-2.0
// All facts that decide whether a GPU can be passed through, as plain values.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"
#include "vm/pci/function.hpp"
#include "vm/vfio/holders.hpp"
#include "vm/vfio/variant_driver.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::vfio {

enum class InterruptRemapping : std::uint8_t { Unknown, On, Off };

struct Iommu {
  bool active = false;          // the kernel uses it: /sys/class/iommu has an entry
  bool firmware_table = false;  // the firmware describes it: ACPI table DMAR or IVRS
  bool guest = false;           // this machine is itself a virtual machine
  bool amd = false;
  std::string disabled_by;  // "intel_iommu=off" of the kernel's command line; "" if nothing
  InterruptRemapping interrupts = InterruptRemapping::Unknown;
  bool unsafe_interrupts = false;  // vfio_iommu_type1.allow_unsafe_interrupts
};

// Nodes of the driver that belong to no GPU. A program that has only these open has perhaps not
// opened its GPU yet.
inline constexpr std::array<std::string_view, 3> kControlNodes{"/dev/nvidiactl", "/dev/nvidia-uvm",
                                                               "/dev/nvidia-uvm-tools"};

// What NVIDIA's driver says about a GPU that it has.
struct DriverGpu {
  model::PciAddress address;
  model::GpuUuid uuid;  // empty if unknown
  std::optional<std::uint32_t> minor;
  bool has_mig_instances = false;
  bool in_mig_mode = false;  // as the last inventory says: only NVML shows a mode without instances
  bool silent = false;       // the driver did not answer in time: all but the address is unknown
  bool operator==(const DriverGpu&) const = default;
};

// Work of Gantry on some functions that did not end: it was killed, or the kernel keeps it.
struct UnfinishedWork {
  std::string kind;  // "bind", "release"
  std::vector<model::PciAddress> functions;
  std::vector<model::PciAddress> stuck;  // of these, a write never returned
};

struct MachineState {
  pci::Bus bus;
  Iommu iommu;
  std::vector<DriverGpu> gpus;
  std::vector<std::string> nvswitch_nodes;  // "/dev/nvidia-nvswitch0"
  std::vector<Holder> holders;              // of any node of any NVIDIA function
  std::vector<Holder> control_holders;      // of kControlNodes, and of no node of a function
  std::vector<VfioAlias> aliases;
  std::optional<bool> has_vfio_module;    // nullopt: the module files cannot be read
  std::optional<bool> has_nvidia_module;  // the same of the driver for a GPU of this machine
  std::vector<UnfinishedWork> unfinished;

  const DriverGpu* driver_gpu(const model::PciAddress& address) const;
};

// The device nodes through which a process may use the function now.
std::vector<std::string> device_nodes(const MachineState& state, const pci::Function& function);

// Reads all of it. If the driver hangs, it gives up on the driver's own files and reads the rest.
Result<MachineState> read_machine_state(const sys::Host& host);

// Parts of it, for tests. All accept any bytes.
InterruptRemapping parse_interrupts(std::string_view proc_interrupts);
std::string find_disabling_parameter(std::string_view cmdline);

// A GPU as a person names it: "0000:3b:00.0", "3b:00.0", a UUID, or the driver's index.
Result<model::PciAddress> find_gpu(const MachineState& state, std::string_view name);

}  // namespace gantry::vfio
