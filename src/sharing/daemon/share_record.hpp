// SPDX-License-Identifier: Apache-2.0
// Shares on disk: /run/gantry/shares/NAME/share.json and NAME/fence/, which containers see at
// /run/gantry/fence. If the daemon is killed, the records stay, and the next daemon restores the
// shares from them.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "sharing/policy/share.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::daemon {

// A process that a share depends on, or that belongs to it. The start time is needed because pids
// are reused.
struct ProcessRef {
  pid_t pid = 0;
  std::uint64_t started = 0;  // /proc/PID/stat
  bool operator==(const ProcessRef&) const = default;
};
ProcessRef process_ref(pid_t pid);
bool is_running(const ProcessRef& process);

struct ShareRecord {
  policy::Share share;
  std::vector<policy::GpuCapacity> cards;  // known before the driver answers
  ProcessRef holder;                       // pid 0: the share stays until it is removed
  std::vector<ProcessRef> adopted;
  std::vector<ProcessRef> contained;  // first processes of its containers
  std::vector<ProcessRef> attached;   // behind the fence, even if not attached again
  std::string cgroup = {};            // directory of the adopted processes' cgroup; "": none
};

std::string to_json(const ShareRecord& record);
Result<ShareRecord> record_from_json(std::string_view text);

// Checks that the name is valid as a directory name. policy::parse_share checks it too; this checks
// it again.
Status check_name(std::string_view name);
std::string fence_directory(std::string_view name);  // below the host's root

// Creates the directory with its mount points, and writes the record by rename.
Status write_record(const sys::Host& host, const ShareRecord& record);
// Updates only the processes of the record.
Status write_processes(const sys::Host& host, const ShareRecord& record);
void remove_record(const sys::Host& host, std::string_view name);

struct StoredRecords {
  std::vector<ShareRecord> records;
  std::vector<Error> problems;          // records that could not be read; they are not deleted
  std::vector<std::string> unfinished;  // half created or removed
};
// Only reads, because a daemon may be running.
StoredRecords read_records(const sys::Host& host);

}  // namespace gantry::daemon
