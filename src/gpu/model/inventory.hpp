// SPDX-License-Identifier: Apache-2.0
// The GPUs and the driver of a machine as a plain value. probe fills it, all modules above read it,
// and inventory_json.hpp gives it a versioned JSON form. nullopt means "not known", never "zero".
#pragma once

#include "gpu/model/gpu_uuid.hpp"
#include "gpu/model/pci_address.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gantry::model {

struct DeviceNode {
  std::string path;  // "/dev/nvidia0", inside the host's root
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string why;  // "GPU 0", "control", "unified memory", "MIG capability gpu0/gi1"
  bool operator==(const DeviceNode&) const = default;
};

struct ComputeCapability {
  int major = 0;
  int minor = 0;
  auto operator<=>(const ComputeCapability&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Engines that an instance owns or shares.
struct MigEngines {
  int copy = 0;
  int decoder = 0;
  int encoder = 0;
  int jpeg = 0;
  int optical_flow = 0;
  bool operator==(const MigEngines&) const = default;
};

struct MigInstance {
  GpuUuid uuid;
  int index = 0;  // NVML's MIG index on its GPU; CDI name "GPU:INDEX"
  int gpu_instance = 0;
  int compute_instance = 0;
  std::string profile;  // "1g.18gb", "1c.3g.71gb", "1g.18gb+me"
  std::uint64_t memory_bytes = 0;
  int multiprocessors = 0;
  int placement_start = 0;
  int placement_size = 0;
  int gpu_slices = 0;
  int compute_slices = 0;
  MigEngines engines;
  std::string gpu_instance_node;      // "/dev/nvidia-caps/nvidia-cap12"; empty when unknown
  std::string compute_instance_node;  // "/dev/nvidia-caps/nvidia-cap13"
  bool operator==(const MigInstance&) const = default;
};

enum class MigMode : std::uint8_t { Unsupported, Disabled, Enabled, Unknown };

struct Mig {
  MigMode current = MigMode::Unknown;
  MigMode pending = MigMode::Unknown;
  std::vector<MigInstance> instances;
  bool operator==(const Mig&) const = default;
};

enum class HealthState : std::uint8_t { Ok, Degraded, Lost, Unknown };

struct Health {
  HealthState state = HealthState::Unknown;
  std::vector<std::string> reasons;  // one sentence each, empty when ok
  bool operator==(const Health&) const = default;
};

// Readings that change from one moment to the next; absent if the card or driver does not provide
// them.
struct Telemetry {
  std::optional<std::uint64_t> memory_used_bytes;
  std::optional<std::uint64_t> memory_free_bytes;
  std::optional<int> temperature_celsius;
  std::optional<int> utilization_percent;
  std::optional<int> power_milliwatts;
  std::optional<int> power_limit_milliwatts;
  std::optional<std::uint64_t> ecc_uncorrected_volatile;
  std::optional<std::uint64_t> ecc_corrected_volatile;
  bool operator==(const Telemetry&) const = default;
};

struct GpuProcess {
  std::uint32_t pid = 0;
  std::optional<std::uint64_t> memory_bytes;
  std::string name;
  char type = 'C';  // C compute, G graphics, B both (nvidia-smi's letters)
  bool operator==(const GpuProcess&) const = default;
};

struct Gpu {
  int index = 0;  // NVML's order if NVML answered, else PCI order
  GpuUuid uuid;
  std::string name;
  PciAddress pci;
  std::optional<std::uint32_t> minor;
  std::vector<std::string>
      drm_nodes;  // "/dev/dri/card1", "/dev/dri/renderD128"; where nvidia-drm is
  std::optional<std::uint64_t> memory_bytes;
  std::optional<int> numa_node;  // nullopt: sysfs says -1 or has no such file
  std::string cpu_list;          // local_cpulist, "" when unknown
  std::optional<ComputeCapability> compute_capability;
  std::string brand;         // "Tesla", "Quadro", "NVIDIA", ...; "" when unknown
  std::string architecture;  // "Hopper"; "" when unknown
  std::optional<bool> persistence;
  std::string vbios;
  std::string gsp_firmware;         // "" if the card runs without it
  std::string serial;               // "" when not given
  std::string compute_mode;         // "Default", "Exclusive_Process", "Prohibited"; "" when unknown
  std::string virtualization;       // "None", "Pass-Through", "VGPU", ...; "" when unknown
  std::uint32_t pci_device_id = 0;  // 0x233510DE: device << 16 | vendor, as NVML gives it
  std::uint32_t pci_subsystem_id = 0;
  std::string fabric_clique;  // "CLUSTER-UUID.CLIQUE" of its NVLink fabric; "" when in none
  Mig mig;
  Health health;
  Telemetry telemetry;
  std::vector<GpuProcess> processes;
  bool operator==(const Gpu&) const = default;
};

// The path between two GPUs; the last enumerator of PciePath is the best.
enum class PciePath : std::uint8_t {
  Self,
  Unknown,
  System,
  Node,
  HostBridge,
  MultiSwitch,
  SingleSwitch,
  SameBoard
};
// nvidia-smi's words: X, ?, SYS, NODE, PHB, PXB, PIX, PSB

struct Link {
  PciePath pcie = PciePath::Unknown;
  int nvlinks = 0;        // active direct NVLinks, or NVLinks to a common switch
  bool nvswitch = false;  // through NVSwitch rather than point to point
  bool operator==(const Link&) const = default;
};

enum class Capability : std::uint8_t { Compute, Utility, Video, Graphics, Display, Ngx, Compat32 };
enum class DriverFileKind : std::uint8_t {
  Library,
  Binary,
  Firmware,
  Config,
  IpcSocket,
  XorgModule
};

struct DriverFile {
  std::string path;  // real file inside the host's root, symlinks resolved
  DriverFileKind kind = DriverFileKind::Library;
  // The container capabilities that need it; empty for files of a device group (cufile.json).
  std::vector<Capability> capabilities;
  std::string soname;  // libraries: DT_SONAME, "" when none
  std::vector<std::string>
      links;  // links to it in its directory: "libcuda.so.1"; absolute when elsewhere
  bool is_32bit = false;
  std::uint64_t size = 0;
  std::string why;  // "in ld.so.cache", "beside libcuda.so.580.159.04 in /usr/local/nvidia/lib64"
  bool operator==(const DriverFile&) const = default;
};

enum class ModuleFlavour : std::uint8_t { Unknown, Proprietary, Open };

struct Driver {
  std::string version;  // kernel module, from /proc/driver/nvidia/version; "" when not loaded
  std::string library_version;  // user space, from the file names or NVML
  std::string cuda_version;     // "13.0"; "" when unknown
  ModuleFlavour flavour = ModuleFlavour::Unknown;
  std::string root = "/";         // directory below which the driver's user space was found
  std::string library_directory;  // where libcuda is
  std::string nvml_error;         // why NVML did not answer; "" when it did
  bool operator==(const Driver&) const = default;
};

// An NVIDIA PCI function, with any driver: GPUs, audio, USB, NVSwitch.
struct PciFunction {
  PciAddress address;
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint32_t class_code = 0;  // 0x030200
  std::string driver;            // "nvidia", "nouveau", "vfio-pci"; "" when none
  std::optional<int> iommu_group;
  std::optional<int> numa_node;
  std::string driver_override;  // "" when none
  bool is_gpu() const { return (class_code >> 8U) == 0x0300U || (class_code >> 8U) == 0x0302U; }
  bool is_nvswitch() const { return (class_code >> 8U) == 0x0680U; }
  bool operator==(const PciFunction&) const = default;
};

// Two sources disagree about a value. Both values are shown; neither is preferred silently.
struct Discrepancy {
  std::string what;    // "GPU-1111…: minor"
  std::string kernel;  // what /proc, /sys or the files say
  std::string nvml;    // what NVML says
  bool operator==(const Discrepancy&) const = default;
};

struct Inventory {
  static constexpr int kSchema = 1;
  std::string generation;  // changes when boot, driver, GPUs or MIG layout change
  std::string boot_id;
  Driver driver;
  std::vector<Gpu> gpus;                 // by index
  std::vector<std::vector<Link>> links;  // links[i][j], gpus.size() squared
  std::vector<DeviceNode> nodes;
  std::vector<DriverFile> files;
  std::vector<PciFunction> functions;  // all NVIDIA functions, by address
  std::vector<Discrepancy> differences;
  std::vector<std::string> notes;  // what could not be read, one sentence each
  bool operator==(const Inventory&) const = default;
};

}  // namespace gantry::model
