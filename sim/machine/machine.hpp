// SPDX-License-Identifier: Apache-2.0
// A simulated machine as a plain value. It comes from a YAML file: one of those compiled into the
// program (machines/*.yaml) or one of the user's. docs/simulated-machines.md describes the format.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/pci_address.hpp"

#include <climits>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::sim {

inline constexpr std::int32_t kUnset = INT32_MIN;  // "this card does not give that value"

using KeyValues = std::vector<std::pair<std::string, std::string>>;

struct MigProfile {
  std::string name;
  std::uint32_t nvml_profile = 0, id = 0, slices = 0, memory_slices = 0, instances = 0,
                memory_mib = 0;
  std::uint32_t multiprocessors = 0, copy_engines = 0, decoders = 0, encoders = 0, jpegs = 0,
                ofas = 0;
  std::vector<std::uint32_t> placements;
};

// An instance to create, at create or by `inject mig`: "3g.20gb", "3g.20gb@4", "3g.20gb=1+2".
struct MigRequest {
  std::string profile;
  std::optional<std::uint32_t> placement;
  std::vector<std::uint32_t> compute_slices;  // empty: one compute instance over everything
};

// A kind of vGPU that the host's driver can make on a card.
struct VgpuType {
  std::uint32_t id = 0;  // 592 of "nvidia-592"
  std::string name;      // "NVIDIA A10-4Q"
  std::uint32_t memory_mib = 0;
};

struct NvLink {
  bool to_switch = true;
  std::uint32_t gpu = 0;      // when not to a switch
  std::string remote_bus_id;  // "00000000:06:00.0"
};

struct Bar {
  std::uint64_t start = 0, size = 0, flags = 0;
};

// One PCI function below /sys/devices. GPUs have one too.
struct PciFunction {
  model::PciAddress address;
  std::optional<model::PciAddress> parent;  // the bridge above it; none: on the root bus
  std::uint32_t vendor = 0x10de, device = 0, subsystem_vendor = 0, subsystem_device = 0;
  std::uint32_t class_code = 0, revision = 0;
  std::string driver;           // "" if no driver is bound
  std::string driver_override;  // "" when none
  std::int32_t numa_node = -1;
  std::optional<std::uint32_t> iommu_group;
  std::uint32_t irq = 0;
  std::vector<Bar> bars;                       // index = BAR number, at most 6
  std::uint32_t link_gen = 0, link_width = 0;  // 0: no link files
  std::uint32_t link_gen_max = 0, link_width_max = 0;
  std::string serial;  // serial_number
  std::string reset_method;
  std::string firmware_node;  // link target, if ACPI knows the slot
  std::string power_state = "D0";
  std::uint32_t dma_bits = 32;
  // The first register of a GPU, by which NVIDIA's driver tells the chips apart: 0x172000a1 is a
  // GA102. 0: that of an H100.
  std::uint32_t chip_id = 0;
  std::uint32_t vfs = 0;  // how many VFs it can have; 0: no SR-IOV
  std::uint32_t vf_device = 0, vf_offset = 4, vf_stride = 1;
  bool config_unreadable = false;         // fell off the bus: every byte of config space is ff
  std::optional<std::uint32_t> drm_card;  // /dev/dri/cardN and renderD(128+N)
};

struct Gpu {
  PciFunction pci;
  std::string uuid, name, brand, architecture, vbios, serial, board_part, gpu_part;
  std::string inforom_image, inforom_oem, inforom_ecc, inforom_power;
  std::string virtualization = "None";
  std::uint64_t pdi = 0;
  std::uint32_t minor = 0, board_id = 0, module_id = 0;
  std::uint32_t pcie_gen_max = 0, pcie_width_max = 0;
  std::uint32_t cc_major = 0, cc_minor = 0, multiprocessors = 0, cores = 0;
  std::uint32_t memory_total_mib = 0, memory_reserved_mib = 0, bar1_mib = 0;
  std::uint32_t memory_bus_bits = 0, l2_cache_bytes = 0;
  std::uint32_t clock_graphics_max = 0, clock_sm_max = 0, clock_memory_max = 0, clock_video_max = 0;
  std::uint32_t clock_graphics = 0, clock_sm = 0, clock_memory = 0, clock_video = 0;
  std::int32_t power_limit_mw = kUnset, power_min_mw = kUnset, power_max_mw = kUnset;
  std::int32_t temperature_slowdown = kUnset, temperature_shutdown = kUnset,
               temperature_max = kUnset;
  bool ecc = false, persistence = false, display_active = false, display_attached = false;
  bool mig_capable = false, mig_enabled = false, gsp = false, excluded = false, lost = false;
  std::int32_t compute_mode = 0;
  std::int32_t fan_percent = kUnset;
  std::int32_t temperature = kUnset, memory_temperature = kUnset, power_mw = kUnset,
               power_average_mw = kUnset;
  std::uint32_t utilization_gpu = 0, utilization_memory = 0, pstate = 0;
  std::uint64_t clocks_event_reasons = 1;  // idle
  bool reset_required = false, remap_pending = false, remap_failure = false;
  std::uint64_t ecc_corrected = 0, ecc_uncorrected = 0;
  std::uint32_t recovery_action = 0;
  std::vector<MigProfile> mig_profiles;
  std::vector<MigRequest> mig;
  std::vector<VgpuType> vgpu_types;
  std::vector<NvLink> nvlinks;
  KeyValues fields;  // name=value for nvidia-smi -q and rare NVML answers
};

enum class Flavour : std::uint8_t { Proprietary, Open };

struct KernelModule {
  std::string name;
  std::uint64_t size = 0;
  std::string users;  // "nvidia_uvm,nvidia_modeset"
  std::uint32_t references = 0;
  std::uint64_t address = 0xffffffffc0000000;
  std::string taint;       // "(POE)"
  bool of_driver = false;  // removed when the NVIDIA driver is unloaded
};

struct Driver {
  std::string version;         // of the libraries; "" when no driver is installed
  std::string module_version;  // of the loaded kernel module; "" when none is loaded
  std::uint32_t cuda = 0;      // 13000
  std::uint32_t nvml_major = 0;
  Flavour flavour = Flavour::Proprietary;
  std::string build;     // rest of the NVRM line
  std::string compiler;  // GCC line of /proc/driver/nvidia/version
  std::string srcversion;
  std::string library_directory, cuda_library_directory, library32_directory;
  std::string binary_directory, firmware_directory, share_directory, module_directory;
  std::string etc_directory = "/etc";
  std::string link_directory;  // absolute links to the libraries, as in /usr/lib on the H200 guest
  std::vector<std::string> link_skip;
  std::vector<std::string> libraries;  // "libcuda.so.1"; "libnvidia-tls.so" = versioned soname;
                                       // "libnvidia-egl-gbm.so.1=1.1.2" = version of its own
  std::vector<std::string> libraries32;
  std::vector<std::string> dev_links;  // libraries with a libX.so link; "*" = all
  std::vector<std::string> binaries, firmware, kernel_objects;
  bool module_signed = false;
  KeyValues params;  // /proc/driver/nvidia/params, in order
  std::vector<KernelModule> modules;
  bool module_unload = true;  // false: kernel without CONFIG_MODULE_UNLOAD, no refcnt files
  std::uint32_t nvidia_major = 195, uvm_major = 0, caps_major = 0, imex_major = 0;
  std::uint32_t nvswitch_major = 0, nvlink_major = 0;
  bool persistenced = false;
  bool gridd = false;                // the licence daemon of a vGPU guest runs
  std::string vgpu_framework;        // of a vGPU host: "mdev" or "vendor"; its manager runs
  std::int32_t fabric_manager = -1;  // -1 not needed, 0 down, 1 running
  KeyValues fields;
};

// A node of another module that works with the driver.
struct ExtraNode {
  std::string path;
  std::uint32_t major = 0, minor = 0, mode = 0666;
  std::string device;  // its name in /proc/devices
};

struct NodeOptions {
  std::uint32_t mode = 0666, uid = 0, gid = 0;
  std::vector<std::string> missing;  // glob patterns of paths below /dev that are not there
  std::vector<ExtraNode> others;
};

struct NumaNode {
  std::string cpus;  // "0-55,112-167"
  std::uint64_t memory_mib = 0;
};

struct LibraryGroup {  // libraries that are not the driver's: the CUDA toolkit, libc
  std::string directory;
  std::vector<std::string> names;
  bool dev_links = false;
};

struct Machine {
  std::string name, description;
  std::string healthy;  // the machine that is this one without its fault; "" if it has none
  std::string hostname, boot_id, os_release, kernel_release, kernel_version, cmdline;
  std::string cpu_model = "Intel(R) Xeon(R) Processor", cpu_vendor = "GenuineIntel";
  bool hypervisor = false;
  bool merged_usr = true;
  bool efi = false, secure_boot = false;
  std::string lockdown;  // "none", "integrity", "confidentiality"; "" = no file
  bool iommu = false;
  KeyValues dmi;
  Driver driver;
  NodeOptions nodes;
  std::vector<NumaNode> numa;
  std::vector<Gpu> gpus;
  std::vector<PciFunction> pci;  // everything except GPUs: bridges, switches, NICs
  std::vector<LibraryGroup> libraries;
  std::vector<std::string> ld_so_conf;  // directories, in order
  KeyValues files;                      // path -> content, replaces generated files
  KeyValues links;                      // path -> target
  std::vector<std::string> absent;      // paths removed at the end
};

std::optional<MigRequest> parse_mig_request(std::string_view text);

// `name` is a compiled-in machine or, with a '/' or ending in ".yaml", a file.
Result<Machine> load_machine(std::string_view name);

// From text; `file` names it in messages. It is an error to have unknown keys, values out of range,
// two GPUs on one address, instances that do not fit.
Result<Machine> parse_machine(std::string_view text, std::string_view file);

// The branches of drivers that come with gantry, such as "580".
std::vector<std::string> driver_branches();

// Each card that comes with gantry once, under a driver of this branch: what the libraries of a
// driver package contain (GANTRY_SIM_PACKAGED). Without a version, that of the branch's file.
Result<Machine> all_cards(std::string_view branch, std::string_view version = "");

struct CatalogEntry {
  std::string name, description;
};
std::vector<CatalogEntry> machine_catalog();                // compiled in, by name
Result<std::string> machine_source(std::string_view name);  // the YAML

}  // namespace gantry::sim
