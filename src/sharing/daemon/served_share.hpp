// SPDX-License-Identifier: Apache-2.0
// One share that is being served: its pages, its socket, its processes.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "sharing/daemon/attached_processes.hpp"
#include "sharing/daemon/share_processes.hpp"
#include "sharing/daemon/share_record.hpp"
#include "sharing/daemon/share_socket.hpp"
#include "sharing/daemon/share_state.hpp"
#include "sharing/daemon/shared_pages.hpp"
#include "sharing/policy/turn_scheduler.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace gantry::daemon {

// While gates are used, the heartbeat is more frequent, and processes notice sooner that it
// stopped.
inline constexpr std::chrono::milliseconds kGatedHeartbeat{10};
inline constexpr std::chrono::milliseconds kGatedStaleAfter{50};

// Origin of a share: created now, or restored from a previous daemon.
enum class Origin : std::uint8_t { Created, FromDisk };

// Parses "GPU-" and 32 hexadecimal digits with dashes; nullopt for anything else.
std::optional<std::array<std::uint8_t, 16>> uuid_bytes(std::string_view text);

class ServedShare {
 public:
  struct Callbacks {
    std::function<void(ServedShare& share, std::uint32_t slot, const FenceReport& report)> report;
    std::function<void(ServedShare& share, std::uint32_t slot)> left;  // its row still exists
  };

  // Writes the record, creates the pages and listens.
  static Result<std::unique_ptr<ServedShare>> open(sys::Loop& loop, const sys::Host& host,
                                                   ShareRecord record, policy::TenantId id,
                                                   Origin origin, Callbacks callbacks);
  ServedShare(const ServedShare&) = delete;
  ServedShare& operator=(const ServedShare&) = delete;

  policy::TenantId id() const { return id_; }
  const ShareRecord& record() const { return record_; }
  const policy::Share& share() const { return record_.share; }
  const std::string& name() const { return record_.share.name; }
  SharedPages& pages() { return pages_; }
  const SharedPages& pages() const { return pages_; }
  const AttachedProcesses& attached_processes() const { return attached_processes_; }
  std::uint32_t gpu_count() const { return pages_.gpu_count(); }
  const policy::GpuCapacity& card(std::uint32_t gpu) const { return record_.cards[gpu]; }
  std::optional<std::uint32_t> index_of(const model::GpuUuid& uuid) const;

  // True if the process belongs to the share, attached or not.
  bool has_process(pid_t pid) { return share_processes_.has(pid, record_, attached_processes_); }

  // True if the process is behind the fence: it is attached, or it was attached to a previous
  // daemon and still runs.
  bool is_fenced(pid_t pid) const;

  std::vector<ShareCgroup> take_groups() { return share_processes_.take_groups(); }

  // Changes the limits of a running share, on disk and in the page. Its GPUs stay the same.
  Status change(const policy::Share& share);
  Status adopt(pid_t pid);
  Status contain(pid_t pid);   // adds the container that has this first process
  void set_gated(bool gated);  // true if time is limited on one of its GPUs
  void set_context_estimate(std::uint32_t gpu, std::uint64_t bytes);
  void on_heartbeat(std::uint64_t now_ns);
  // Call this when NVML has reported, at that time, what its processes use on all of its GPUs.
  void on_gpus_read(std::uint64_t asked_ns);

  void add_finding(FindingState finding);
  const std::deque<FindingState>& findings() const { return findings_; }
  std::uint64_t refused() const { return refused_; }

 private:
  ServedShare(sys::Loop& loop, const sys::Host& host, ShareRecord record, policy::TenantId id,
              SharedPages pages, Callbacks callbacks);
  GpuPageValues page_gpu(std::uint32_t gpu) const;
  void show_limits();
  void joined(const AttachedProcess& member);
  void left(const AttachedProcess& member);
  void save();

  const sys::Host& host_;
  ShareRecord record_;
  policy::TenantId id_;
  SharedPages pages_;
  Callbacks callbacks_;
  ShareProcesses share_processes_;
  AttachedProcesses attached_processes_;
  std::unique_ptr<ShareSocket> socket_;
  std::vector<std::uint64_t> context_estimates_;
  bool gated_ = false;
  bool unsaved_ = false;            // the attached processes
  std::uint64_t recovered_ns_ = 0;  // since when processes wait for NVML; 0: none waits
  std::uint64_t refused_ = 0;
  std::deque<FindingState> findings_;
};

}  // namespace gantry::daemon
