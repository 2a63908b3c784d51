// SPDX-License-Identifier: Apache-2.0
// What the keeper tells of its shares: plain values, and their JSON on the control socket.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/inventory.hpp"
#include "sharing/policy/share.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::daemon {

// A process on a GPU that belongs to no share.
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
  std::uint64_t memory_held = 0;   // allocated, as its processes say
  std::uint64_t memory_used = 0;   // as NVML says: with contexts and modules
  double part = 0;                 // of the GPU's time that it may have now; 1 is all
  double used = 0;                 // of the GPU's time that it had in the last second, as charged
  double measured = -1;            // the same as NVML samples it; -1: not known
  std::string gate;                // "open", "one", "shut"
  bool busy = false;
  // Where time is limited: whom no turn holds back. The first kMaxUnmanagedProcesses.
  std::vector<UnmanagedProcess> unmanaged = {};
  bool operator==(const GpuState&) const = default;
};

struct ProcessGpuState {
  std::uint64_t memory_held = 0;
  std::uint64_t memory_used = 0;
  std::uint64_t launches = 0;
  std::uint32_t contexts = 0;
  std::uint32_t waiting = 0;  // threads at a shut gate
  bool busy = false;
  bool operator==(const ProcessGpuState&) const = default;
};

struct ProcessState {
  std::uint32_t pid = 0;        // of the host
  std::uint32_t inner_pid = 0;  // as its container sees it
  std::string command;
  std::vector<ProcessGpuState> gpus;  // in the share's order
  bool operator==(const ProcessState&) const = default;
};

// Something the auditor saw.
struct FindingState {
  std::int64_t at_unix_ms = 0;
  std::string kind;  // "memory", "time", "unfenced", ...
  std::uint32_t pid = 0;
  std::string text;
  bool stopped = false;
  bool operator==(const FindingState&) const = default;
};

struct ShareState {
  policy::Share share;        // its GPUs as they were chosen
  std::string directory;      // on the host: what is mounted at /run/gantry/fence
  bool held = false;          // ends with the connection that holds it
  std::uint64_t refused = 0;  // allocations that did not fit
  std::vector<GpuState> gpus;
  std::vector<ProcessState> processes;  // that have attached, at most kMaxProcesses of them
  std::uint64_t more_processes = 0;     // beyond these
  std::vector<FindingState> findings;   // the newest, at most kMaxFindings
  bool operator==(const ShareState&) const = default;
};
inline constexpr std::size_t kMaxFindings = 32;
// A share may have a thousand, and all that is told must fit into one answer.
inline constexpr std::size_t kMaxProcesses = 64;

inline std::uint64_t process_count(const ShareState& state) {
  return state.processes.size() + state.more_processes;
}

std::string to_json(const ShareState& state);  // one line
// Corrupt for anything that to_json did not write.
Result<ShareState> state_from_json(std::string_view text);

}  // namespace gantry::daemon
