// SPDX-License-Identifier: Apache-2.0
// Everything about a machine that decides whether a driver can be installed on it: plain values,
// read once. Reading changes nothing.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"
#include "gpu/model/pci_address.hpp"
#include "install/driver_package/os_release.hpp"
#include "install/kernel_module/loaded_modules.hpp"
#include "install/kernel_module/module_trust.hpp"
#include "install/kernel_module/running_kernel.hpp"
#include "install/preflight/driver_branches.hpp"
#include "install/preflight/request.hpp"
#include "vm/vfio/holders.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::preflight {

struct GpuFact {
  model::PciAddress address;
  std::uint16_t device = 0;
  Architecture architecture = Architecture::Unknown;
  std::string name;        // "Quadro K620"; "" before a driver told it
  std::string driver;      // that is bound: "nvidia", "nouveau", "vfio-pci"; "" if there is none
  bool is_vgpu = false;    // part of a card that a hypervisor gave to this guest
  std::string vgpu_host_driver;  // its version, as the vGPU itself tells; "" if unknown
  bool boot_display = false;     // the firmware uses it as the console
  bool lost = false;             // its configuration space reads all ones

  // "0000:3b:00.0 (Quadro K620, Maxwell)"
  std::string describe() const;
};

// A driver that shows the console through a framebuffer that the firmware left.
struct FramebufferFact {
  std::string driver;  // "simpledrm", "efifb"
  std::string device;  // "simple-framebuffer.0", "fb0"
};

// Returned by who_uses: one process that keeps a node of the driver open.
struct HolderFact {
  vfio::Holder process;
  std::string container;  // its id; "" if it is in none
};
std::string describe(const HolderFact& holder);

// A container whose files include those of the driver that is installed now.
struct ContainerFact {
  std::string id;
  std::string pod;   // "namespace/name" or the pod's UID; "" if it is not of a pod
  std::string name;  // of its first process
};

struct DiskFact {
  std::string path;   // as asked for
  std::string mount;  // where its file system is mounted; "" if unknown
  std::optional<std::uint64_t> free_bytes;
  bool read_only = false;
  bool no_exec = false;
};

struct CompilerFact {
  std::optional<int> default_major;  // of `gcc` or `cc`
  std::vector<int> majors;           // of every gcc that is installed, ascending
  bool has_make = false;
  bool has_linker = false;
};

// When the clock of the machine can be believed. Seconds since 1970.
struct ClockFact {
  struct Evidence {
    std::string what;  // "/var/lib/dpkg/status", "the build of gantry"
    std::int64_t time = 0;
  };
  std::int64_t now = 0;
  std::vector<Evidence> past;  // moments that have certainly passed
};

enum class InstalledKind : std::uint8_t {
  None,
  Gantry,     // by us
  Run,        // by NVIDIA's archive
  Deb,        // packages
  Rpm,        //
  Google,     // by Google's installer: a directory of its own and a .cache
  VgpuHost,   // the driver of a hypervisor
  Container,  // by a driver container, below /run/nvidia/driver
  Unknown     // its files are there, but nothing says where they came from
};
std::string_view to_string(InstalledKind kind);

struct InstalledDriver {
  InstalledKind kind = InstalledKind::None;
  std::string version;                // of the files; "" if it cannot be told
  std::string directory;              // where its libraries are
  std::vector<std::string> packages;  // of a distribution: "nvidia-driver-535 535.183.01-0ubuntu1"
  bool dkms = false;                  // DKMS builds its modules
};

struct LoadedDriver {
  std::string version;  // "" if the module is not loaded
  model::ModuleFlavour flavour = model::ModuleFlavour::Unknown;
};

struct Rights {
  unsigned uid = 0;
  std::uint64_t capabilities = 0;      // effective, bit N is capability N
  bool first_user_namespace = true;    // else the kernel refuses modules whatever the capabilities
  bool in_pod = false;                 // or in another container
  bool has(unsigned capability) const { return (capabilities >> capability & 1U) != 0; }
};

struct MachineFacts {
  std::string machine;  // "x86_64", "aarch64"
  bool wsl = false;
  bool guest = false;  // of a hypervisor

  std::vector<GpuFact> gpus;  // by address; without virtual functions of a vGPU host
  unsigned nvswitches = 0;
  std::vector<FramebufferFact> framebuffers;

  driver_package::OsRelease os;
  kernel_module::RunningKernel kernel;
  std::optional<kernel_module::KernelBuildDir> headers;
  std::string headers_problem;  // why there are none that can be used; "" if there are
  std::vector<std::string> newer_kernels;  // installed, newer than the running one
  CompilerFact compiler;
  kernel_module::ModuleTrust trust;
  bool modules_disabled = false;  // kernel.modules_disabled, or a kernel without modules
  bool can_unload = true;         // false: CONFIG_MODULE_UNLOAD is off
  std::vector<kernel_module::LoadedModule> modules;
  std::vector<std::string> blacklists;  // files of modprobe that forbid nvidia

  LoadedDriver loaded;
  std::vector<InstalledDriver> installed;  // of every kind that is there
  std::vector<HolderFact> holders;
  std::vector<ContainerFact> containers;

  std::vector<DiskFact> disks;
  std::optional<std::uint64_t> memory_available;  // bytes; the limit of our cgroup counts
  ClockFact clock;
  std::string glibc;  // "2.36"; "" if there is none
  bool musl = false;
  Rights rights;

  std::vector<std::string> notes;  // what could not be read, one sentence each

  bool is_loaded(std::string_view module) const;  // "nvidia_uvm"
  const DiskFact* disk(std::string_view path) const;
  const InstalledDriver* find_installed(InstalledKind kind) const;
  std::vector<Architecture> architectures() const;  // of the GPUs that the driver is for
};

// What a tree of files cannot tell. Tests give their own.
struct FactSources {
  std::int64_t now = 0;            // seconds since 1970
  std::int64_t program_built = 0;  // 0: unknown
  Rights rights;
  std::string machine;             // of uname; "" to take it from the tree
  std::vector<std::string> paths;  // whose file systems will be written to
  // The file system of a path that need not exist yet.
  std::function<DiskFact(const sys::Host&, const std::string&)> disk;
  const sys::Host* toolchain = nullptr;  // where the compiler is; nullptr: on the host itself
  std::optional<std::uint64_t> memory_limit;  // of our own cgroup
};

// Of this process and the machine it runs on.
FactSources live_sources(const sys::Host& host, const DriverRequest& request);

// Fails only if PCI functions cannot be listed at all; everything else becomes a note.
Result<MachineFacts> read_facts(const sys::Host& host, const FactSources& sources);

}  // namespace gantry::preflight
