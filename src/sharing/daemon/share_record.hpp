// SPDX-License-Identifier: Apache-2.0
// Shares on disk: /run/gantry/shares/NAME/share.json, and fence/ beside it, which containers have
// at /run/gantry/fence. A keeper that is killed leaves them, and the next one goes on with them.
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

// A process that a share lives with, or that belongs to it. A number alone is used again.
struct ProcessRef {
  pid_t pid = 0;
  std::uint64_t started = 0;  // /proc/PID/stat
  bool operator==(const ProcessRef&) const = default;
};
ProcessRef process_ref(pid_t pid);
bool is_running(const ProcessRef& process);

struct ShareRecord {
  policy::Share share;
  std::vector<policy::GpuCapacity> cards;  // its GPUs: known before the driver answers
  ProcessRef holder;                       // pid 0: stays until it is removed
  std::vector<ProcessRef> adopted;
  std::vector<ProcessRef> contained;  // first processes of its containers
  std::vector<ProcessRef> attached;   // behind the fence, whether they have said so again or not
};

std::string to_json(const ShareRecord& record);
Result<ShareRecord> record_from_json(std::string_view text);

// Names that a share may have as a directory are checked by share_from; this checks again.
Status check_name(std::string_view name);
std::string fence_directory(std::string_view name);  // below the host's root

// The directory with its mount points, and the record, by rename.
Status write_record(const sys::Host& host, const ShareRecord& record);
// Only its processes are others now: what else there is of it stays.
Status write_processes(const sys::Host& host, const ShareRecord& record);
void remove_record(const sys::Host& host, std::string_view name);

struct StoredRecords {
  std::vector<ShareRecord> records;
  std::vector<Error> problems;  // what could not be read is left where it is
  std::vector<std::string>
      unfinished;  // were being made or removed: for who has the lock to remove
};
// Reads alone: a keeper may be at work.
StoredRecords read_records(const sys::Host& host);

}  // namespace gantry::daemon
