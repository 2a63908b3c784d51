// SPDX-License-Identifier: Apache-2.0
// The input of the checks: the machine below its root, the inventory, and facts that are read on
// first use. Reading never changes the machine.
#pragma once

#include "base/sys/host.hpp"
#include "doctor/engine/guest.hpp"
#include "gpu/health/compute.hpp"
#include "gpu/model/inventory.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::doctor {

// The user who runs the doctor: decides which nodes can be opened and which libraries are found.
struct Caller {
  unsigned uid = 0;
  std::vector<unsigned> groups;  // the effective group first
  std::string library_path;      // LD_LIBRARY_PATH
};

Caller this_process();

struct Process {
  unsigned pid = 0;
  std::string name;  // comm: at most 15 characters
  char state = '?';
};

struct MountEntry {
  std::string device;
  std::string point;
  std::string type;
  std::vector<std::string> options;
  bool has(std::string_view option) const;
};

// The API server's facts about this node.
struct ClusterView {
  std::string node;             // the Node object, JSON
  std::string runtime_classes;  // the list, JSON; "" if we may not read it
  std::string error;            // why the node could not be read; "" on success
};

// The answer of the share daemon, and the records that it keeps on disk.
struct SharesView {
  struct AuditFinding {  // of the share daemon's auditor
    std::string share;
    std::string text;
    std::int64_t seconds_ago = 0;
    bool stopped = false;
  };
  struct Library {
    std::string path;
    bool there = false;
    std::string trouble;  // why it cannot be used; "" if it can
  };
  struct ForeignProcess {  // without a share, on a GPU whose shares have compute limits
    std::string gpu;
    std::uint32_t pid = 0;
    std::string command;
    std::string memory;  // formatted: "1.5 GiB"
  };
  bool only_root = false;               // only root may ask the daemon
  std::vector<std::string> names;       // of shares with a record
  std::vector<std::string> unreadable;  // records that cannot be read, and why
  std::string no_answer_reason;         // why the daemon does not answer; "" if it does
  std::uint64_t hung_pid = 0;           // of a daemon that exists and does not answer
  std::vector<AuditFinding> findings;
  std::vector<ForeignProcess> beside;
  std::vector<Library> libraries;  // the fence's libraries
};

struct FactSources {
  Caller caller;
  std::optional<std::string> kernel_log;  // nullopt: read it from the machine
  bool this_machine = true;  // we may run its programs; see sys::Kernel::is_this_machine
  // Free bytes of the file system that holds a path; nullopt if unknown.
  std::function<std::optional<std::uint64_t>(const sys::Host&, const std::string&)> free_bytes;
  std::optional<ClusterView> cluster;  // nullopt: the API server was not asked
  std::optional<SharesView> shares;    // nullopt: the share daemon was not asked
  // What a program of the machine prints, one that changes nothing: `systemctl show`. nullopt if it
  // fails or is missing. Empty: no program may be run.
  std::function<std::optional<std::string>(const std::vector<std::string>& argv)> program_output;
};

// The sources of the running system: this process, statvfs and, for the tree "/", its programs.
FactSources live_sources(const sys::Host& host);

class Facts {
 public:
  Facts(const sys::Host& host, const model::Inventory& inventory, const FactSources& sources);

  const sys::Host& host() const { return host_; }
  const model::Inventory& inventory() const { return inventory_; }
  const Caller& caller() const { return sources_.caller; }
  const Guest& guest() const { return guest_; }
  const ClusterView* cluster() const { return sources_.cluster ? &*sources_.cluster : nullptr; }
  const SharesView* shares() const { return sources_.shares ? &*sources_.shares : nullptr; }
  bool this_machine() const { return sources_.this_machine; }
  // nullopt also if no program may be run.
  std::optional<std::string> program_output(const std::vector<std::string>& argv) const;

  std::optional<std::string> value(std::string_view path) const { return host_.read_value(path); }
  // Returns true if we have no permission to read the path; it may or may not exist.
  bool denied(std::string_view path) const;
  // The path with its value, or "(absent)".
  Evidence read(std::string_view path) const;

  // The kernel's messages since boot; nullopt when they cannot be read.
  const std::optional<std::string>& kernel_log() const;
  std::vector<std::string> log_lines_with(std::string_view part) const;

  const std::vector<Process>& processes() const;
  bool running(std::string_view program) const;
  const std::vector<MountEntry>& mounts() const;
  const MountEntry* mount_of(std::string_view path) const;  // nullptr: mounts are not known
  std::optional<std::uint64_t> free_bytes(const std::string& path) const;

  std::string kernel_release() const;  // "" when unknown
  bool module_loaded(std::string_view name) const;
  bool driver_loaded() const;
  std::optional<std::uint32_t> major(std::string_view name) const;  // /proc/devices, characters

  // What keeps GPUs from computing, as the agent's health sees it, too.
  const std::vector<health::ComputeObstacle>& compute_obstacles() const;
  const health::ComputeObstacle* obstacle(health::ComputeObstacleKind kind) const {
    return health::find_obstacle(compute_obstacles(), kind);
  }

  // /proc/driver/nvidia/params
  std::optional<std::string> param(std::string_view name) const;
  std::optional<std::uint64_t> param_number(std::string_view name) const;

  bool installed(std::string_view program) const;  // in one of the usual bin directories
  std::string group_name(unsigned gid) const;      // the number if the group has no name
  // The lines of modprobe's configuration without comments, each with its file.
  const std::vector<Evidence>& modprobe_lines() const;

  // The GPU functions of the machine, without the virtual functions of a vGPU host.
  std::vector<model::PciFunction> gpu_functions() const;
  std::vector<model::PciFunction> nvswitches() const;
  std::vector<int> online_numa_nodes() const;

 private:
  const sys::Host& host_;
  const model::Inventory& inventory_;
  const FactSources& sources_;
  Guest guest_;
  mutable std::optional<std::optional<std::string>> kernel_log_;
  mutable std::optional<std::vector<Process>> processes_;
  mutable std::optional<std::vector<MountEntry>> mounts_;
  mutable std::optional<std::map<std::string, std::string, std::less<>>> params_;
  mutable std::optional<std::vector<Evidence>> modprobe_lines_;
  mutable std::optional<std::vector<health::ComputeObstacle>> obstacles_;
};

std::string pci_path(const model::PciAddress& address);  // "/sys/bus/pci/devices/0000:3b:00.0"

// "0-1,4" -> 0 1 4. Skips invalid numbers; returns at most 4096.
std::vector<int> parse_number_list(std::string_view text);

}  // namespace gantry::doctor
