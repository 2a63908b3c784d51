// SPDX-License-Identifier: Apache-2.0
// What the share daemon reports about its shares: plain values, and their JSON on the control
// socket.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "gpu/model/inventory.hpp"
#include "sharing/policy/share.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::daemon {

// A process that uses a GPU and belongs to no share.
struct UnmanagedProcess {
  std::uint32_t pid = 0;
  std::uint64_t memory_used = 0;
  std::string command;
  bool operator==(const UnmanagedProcess&) const = default;
};
inline constexpr std::size_t kMaxUnmanagedProcesses = 16;

// A share on one of its GPUs.
struct GpuState {
  model::GpuUuid uuid;
  std::uint64_t memory_total = 0;  // of the card
  std::uint64_t memory_limit = 0;  // UINT64_MAX: none
  std::uint64_t memory_held = 0;   // allocated, as its processes report
  std::uint64_t memory_used = 0;   // as NVML reports: with contexts and modules
  double part = 0;                 // part of the GPU's time that it may use now; 1 is all
  double used = 0;                 // part of the GPU's time that it was charged in the last second
  double measured = -1;            // the same as sampled by NVML; -1: unknown
  std::string gate;                // "open", "one", "shut"
  bool busy = false;
  // If time is limited: processes that do not take turns. At most kMaxUnmanagedProcesses.
  std::vector<UnmanagedProcess> unmanaged = {};
  bool operator==(const GpuState&) const = default;
};

struct ProcessGpuState {
  std::uint64_t memory_held = 0;
  std::uint64_t memory_used = 0;
  std::uint64_t launches = 0;
  std::uint32_t contexts = 0;
  std::uint32_t waiting = 0;  // threads that wait at a shut gate
  bool busy = false;
  bool operator==(const ProcessGpuState&) const = default;
};

struct ProcessState {
  std::uint32_t pid = 0;        // on the host
  std::uint32_t inner_pid = 0;  // in its container
  std::string command;
  std::vector<ProcessGpuState> gpus;  // in the share's order
  bool operator==(const ProcessState&) const = default;
};

// Something that the auditor found.
struct FindingState {
  std::int64_t at_unix_ms = 0;
  std::string kind;  // "memory", "time", "unfenced", ...
  std::uint32_t pid = 0;
  std::string text;
  bool stopped = false;
  bool operator==(const FindingState&) const = default;
};

struct ShareState {
  policy::Share share;        // with the GPUs that were chosen
  std::string directory;      // on the host; mounted at /run/gantry/fence
  bool held = false;          // ends with the connection that holds it
  std::uint64_t refused = 0;  // number of allocations that did not fit
  std::vector<GpuState> gpus;
  std::vector<ProcessState> processes;  // attached processes, at most kMaxShownProcesses of them
  std::uint64_t more_processes = 0;     // number of attached processes that are not listed
  std::vector<FindingState> findings;   // the newest findings, at most kMaxFindings
  bool operator==(const ShareState&) const = default;
};
inline constexpr std::size_t kMaxFindings = 32;
// The number of attached processes. A share may have a thousand, but the whole report must fit into
// one answer.
inline constexpr std::size_t kMaxShownProcesses = 64;

inline std::uint64_t process_count(const ShareState& state) {
  return state.processes.size() + state.more_processes;
}

void write(json::Writer& out, const ShareState& state);
std::string to_json(const ShareState& state);  // one line
// As commands print it with --json: policy::kDocumentVersion. null where there is no limit, or a
// value is unknown.
std::string to_document(const ShareState& state);
// Corrupt if neither of them wrote it.
Result<ShareState> state_from_json(json::Value value);

}  // namespace gantry::daemon
