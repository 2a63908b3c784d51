// SPDX-License-Identifier: Apache-2.0
// Knows which processes belong to a share, whether they attach to it or not.
#pragma once

#include "sharing/daemon/attached_processes.hpp"
#include "sharing/daemon/share_cgroup.hpp"
#include "sharing/daemon/share_record.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gantry::daemon {

class ShareProcesses {
 public:
  // Adds `pid` to the share, and moves it into the share's own cgroup if that is possible. Returns
  // the cgroup's directory, or "".
  std::string adopt(const ProcessRef& process, std::string_view share);
  // The same without a cgroup of ours: a container has its own, which its engine manages.
  void contain(const ProcessRef& process) { add_container(process.pid); }
  // Ends the share: its cgroups are removed when they are empty.
  std::vector<ShareCgroup> take_groups() { return std::exchange(groups_, {}); }
  // Its container belongs to the share, with all processes in it.
  void joined(const AttachedProcess& member);

  // True if the process belongs to the share by its cgroup, its container or one of its ancestors.
  // It then belongs to the share until it ends, even if it leaves its parents as a daemon.
  bool has(pid_t pid, const ShareRecord& record, const AttachedProcesses& attached_processes);

  // Decides by the text of /proc/PID/cgroup.
  void add_container_of(std::string_view cgroup);
  bool is_in_container(std::string_view cgroup) const;

 private:
  void add_container(pid_t pid);
  bool belongs(pid_t pid, const ShareRecord& record,
               const AttachedProcesses& attached_processes) const;

  std::vector<ShareCgroup> groups_;
  std::set<std::string> containers_;      // the path of each in a cgroup hierarchy
  std::map<pid_t, std::uint64_t> known_;  // with its start time
};

}  // namespace gantry::daemon
