// SPDX-License-Identifier: Apache-2.0
// Which processes belong to a share, whether they attach to it or not.
#pragma once

#include "sharing/daemon/members.hpp"
#include "sharing/daemon/process_group.hpp"
#include "sharing/daemon/record.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gantry::daemon {

class Family {
 public:
  // `share` moves `pid` into a cgroup of its own where there can be one.
  void adopt(const KnownProcess& process, std::string_view share);
  // The same without a cgroup of ours: a container has its own, which its engine looks after.
  void contain(const KnownProcess& process) { know_container(process.pid); }
  // The share ends: its cgroups are to be removed when they are empty.
  std::vector<ProcessGroup> take_groups() { return std::exchange(groups_, {}); }
  // Its container is the share's, with everybody in it.
  void joined(const Member& member);

  // By cgroup, by container, or because one of its ancestors does. Once it does, it does until it
  // ends: a daemon leaves its parents.
  bool has(pid_t pid, const Record& record, const Members& members);

  // By the text of /proc/PID/cgroup.
  void know_container_of(std::string_view cgroup);
  bool is_in_known_container(std::string_view cgroup) const;

 private:
  void know_container(pid_t pid);
  bool belongs(pid_t pid, const Record& record, const Members& members) const;

  std::vector<ProcessGroup> groups_;
  std::set<std::string> containers_;      // each one's place in a hierarchy of cgroups
  std::map<pid_t, std::uint64_t> known_;  // with its start
};

}  // namespace gantry::daemon
