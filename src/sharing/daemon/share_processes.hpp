// SPDX-License-Identifier: Apache-2.0
// Which processes belong to a share, whether they attach to it or not.
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
  // `share` moves `pid` into a cgroup of its own where there can be one.
  void adopt(const ProcessRef& process, std::string_view share);
  // The same without a cgroup of ours: a container has its own, which its engine looks after.
  void contain(const ProcessRef& process) { add_container(process.pid); }
  // The share ends: its cgroups are to be removed when they are empty.
  std::vector<ShareCgroup> take_groups() { return std::exchange(groups_, {}); }
  // Its container is the share's, with everybody in it.
  void joined(const AttachedProcess& member);

  // By cgroup, by container, or because one of its ancestors does. Once it does, it does until it
  // ends: a daemon leaves its parents.
  bool has(pid_t pid, const ShareRecord& record, const AttachedProcesses& attached_processes);

  // By the text of /proc/PID/cgroup.
  void add_container_of(std::string_view cgroup);
  bool is_in_container(std::string_view cgroup) const;

 private:
  void add_container(pid_t pid);
  bool belongs(pid_t pid, const ShareRecord& record,
               const AttachedProcesses& attached_processes) const;

  std::vector<ShareCgroup> groups_;
  std::set<std::string> containers_;      // each one's place in a hierarchy of cgroups
  std::map<pid_t, std::uint64_t> known_;  // with its start
};

}  // namespace gantry::daemon
