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
#include "vm/pci/function.hpp"
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
  std::string name;              // "Quadro K620"; "" if neither a driver nor a table has it
  std::string driver;            // that is bound: "nvidia", "nouveau"; "" if there is none
  std::string driver_module;     // the module of that driver: "nova_core" for NovaCore
  bool is_vgpu = false;          // part of a card that a hypervisor gave to this guest
  std::string vgpu_host_driver;  // its version, as the vGPU itself tells; "" if unknown
  bool boot_display = false;     // the firmware uses it as the console
  bool lost = false;             // its configuration space reads all ones

  // Given to virtual machines: VFIO holds it. The driver is not for it.
  bool is_for_virtual_machines() const { return pci::is_vfio_driver(driver); }
  // "0000:3b:00.0 (Quadro K620, Maxwell)"
  std::string describe() const;
};

// A driver that shows the console through a framebuffer that the firmware left.
struct FramebufferFact {
  std::string driver;  // "simpledrm", "efifb"
  std::string device;  // "simple-framebuffer.0"
  bool operator==(const FramebufferFact&) const = default;
};

// One process that has nodes of the driver open.
struct HolderFact {
  vfio::Holder process;            // with the first node
  std::vector<std::string> nodes;  // all of them
  std::string container;           // its id; "" if it is in none
  // A daemon of the driver or of Gantry, which an installation stops and starts itself.
  bool is_service = false;
};
// "pid 4711 (python3 train.py) of pod default/train has /dev/nvidia0 open"
std::string describe(const HolderFact& holder);

// A container whose files include those of the driver that is installed now.
struct ContainerFact {
  std::string id;
  std::string pod;        // "namespace/name" or the pod's UID; "" if it is not of a pod
  std::uint32_t pid = 0;  // of its first process
  std::string command;    // of that process
};

struct DiskFact {
  std::string path;   // as asked for
  std::string mount;  // where its file system is mounted; "" if unknown
  std::optional<std::uint64_t> free_bytes;
  bool read_only = false;
  bool no_exec = false;
};

// A file that the request names.
struct FileFact {
  std::string path;
  bool exists = false;
  std::uint64_t bytes = 0;
};

struct CompilerFact {
  std::optional<int> default_gcc;  // major version of `gcc`, or of `cc` if that is a gcc
  std::vector<int> gcc;            // of every gcc that can be called, as gcc or gcc-12; ascending
  std::vector<int> clang;          // of every clang-17; ascending
  bool has_clang = false;          // `clang` itself, of any version
  std::vector<int> lld;            // of every ld.lld-17; ascending
  bool has_lld = false;            // `ld.lld` itself, of any version
  bool has_make = false;
  bool has_linker = false;
  bool from_image = false;  // found in the image of this pod and not on the host
};

// Which clang and linker a kernel of clang's is extended with: "clang" and "ld.lld", or those of
// the kernel's own version, "clang-17" and "ld.lld-17". nullopt if one of them is missing.
struct ClangTools {
  std::string suffix;  // "", "-17"
  bool operator==(const ClangTools&) const = default;
};
std::optional<ClangTools> choose_clang(const CompilerFact& compiler,
                                       const kernel_module::RunningKernel& kernel);

// Seconds since 1970.
struct ClockFact {
  struct Evidence {
    std::string what;  // "/var/lib/dpkg/status", "the build of gantry"
    std::int64_t time = 0;
  };
  std::int64_t now = 0;
  std::vector<Evidence> past;  // moments that have certainly passed
};

// A module that was built elsewhere, as a request names it.
struct PrecompiledFact {
  std::string path;
  Result<kernel_module::ModuleFile> module;
  std::optional<Error> digest_fault{};  // NotFound: no list of digests; else it is not in the list
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

// What Gantry's own record says of the archive that it installed.
struct RecordedArchive {
  std::string version;
  std::string url;     // "" for a local file
  std::string digest;  // sha256
  std::string name;    // of its directory, one of MachineFacts::placed_versions if it is complete
};

struct LoadedDriver {
  std::string version;  // "" if the module is not loaded
  model::ModuleFlavour flavour = model::ModuleFlavour::Unknown;
};

struct Rights {
  unsigned uid = 0;
  std::uint64_t capabilities = 0;    // effective, bit N is capability N
  bool first_user_namespace = true;  // else the kernel refuses modules whatever the capabilities
  bool in_pod = false;               // or in another container
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
  std::optional<Error> headers_error;      // why there are none that can be used
  std::string build_release;               // of the kernel to build for; most often the running one
  std::vector<std::string> newer_kernels;  // installed, newer than the running one
  CompilerFact compiler;
  kernel_module::ModuleTrust trust;
  bool modules_disabled = false;  // kernel.modules_disabled, or a kernel without modules
  bool can_unload = true;         // false: CONFIG_MODULE_UNLOAD is off
  std::vector<kernel_module::LoadedModule> modules;
  std::vector<std::string> blacklists;  // files of modprobe that forbid nvidia

  LoadedDriver loaded;
  std::vector<InstalledDriver> installed;  // of every kind that is there
  // Names of versions that are complete in the directory of the driver, in use or not:
  // "580.159.04-0123456789ab-open".
  std::vector<std::string> placed_versions;
  RecordedArchive recorded;  // with an empty name if nothing is recorded
  std::vector<PrecompiledFact> precompiled;
  std::vector<HolderFact> holders;
  std::vector<ContainerFact> containers;

  std::vector<DiskFact> disks;
  std::vector<FileFact> files;
  std::optional<std::uint64_t> memory_available;  // bytes; the limit of our cgroup counts
  ClockFact clock;
  std::string glibc;  // "2.36"; "" if there is none
  bool musl = false;
  Rights rights;

  std::vector<std::string> notes;  // what could not be read, one sentence each

  bool is_loaded(std::string_view module) const;  // "nvidia_uvm"
  const DiskFact* disk(std::string_view path) const;
  const FileFact* file(std::string_view path) const;
  const InstalledDriver* find_installed(InstalledKind kind) const;
  std::vector<Architecture> architectures() const;  // of the GPUs that the driver is for
};

// The kernel that modules are built for, as far as its compiler goes: the headers know better than
// the running kernel.
kernel_module::RunningKernel kernel_of_build(const MachineFacts& facts);

// What a tree of files cannot tell, and what to look at. Tests give their own.
struct FactSources {
  std::int64_t now = 0;            // seconds since 1970
  std::int64_t program_built = 0;  // 0: unknown
  Rights rights;
  std::string machine;             // of uname
  std::string kernel;              // the release to build for; "": the running one
  std::string directory;           // of the driver
  std::string modules;             // the directory with modules that were built elsewhere; "": none
  std::string modules_sha256;      // of their list of digests
  std::vector<std::string> paths;  // whose file systems will be written to; they need not exist
  std::vector<std::string> files;  // that the request names
  // Free bytes and flags of the file system of an existing path. Empty: only what the list of
  // mounts tells.
  std::function<std::optional<DiskFact>(const sys::Host&, const std::string&)> disk;
  // The tree with the compiler: in a pod, the image. "": the host itself.
  std::string toolchain_root;
  std::optional<std::uint64_t> memory_limit;  // of our own cgroup
};

// Of this process and the machine it runs on. The build time is that of its program; the caller
// that knows a better one replaces it.
FactSources live_sources(const sys::Host& host, const DriverRequest& request);

// Never changes the machine, and asks no program. Fails only if nothing can be known: the PCI
// functions cannot be listed. Everything else becomes a note. Reads /proc for every process:
// milliseconds to tenths of a second.
Result<MachineFacts> read_facts(const sys::Host& host, const FactSources& sources);

}  // namespace gantry::preflight
