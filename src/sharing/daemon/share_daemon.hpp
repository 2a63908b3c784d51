// SPDX-License-Identifier: Apache-2.0
// The share daemon: the shares, the turns of their GPUs, and NVML's data about their processes. It
// has one thread and one loop; calls that may take long (NVML) run in a child process.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "base/sys/loop.hpp"
#include "gpu/ownership/changes_at_start.hpp"
#include "sharing/daemon/control_socket.hpp"
#include "sharing/daemon/gpu_turn_scheduler.hpp"
#include "sharing/daemon/gpu_watcher.hpp"
#include "sharing/daemon/overhead.hpp"
#include "sharing/daemon/process_terminator.hpp"
#include "sharing/daemon/protocol.hpp"
#include "sharing/daemon/realtime_priority.hpp"
#include "sharing/daemon/serve.hpp"
#include "sharing/daemon/served_share.hpp"
#include "sharing/policy/audit.hpp"
#include "sharing/policy/meter.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gantry::daemon {

// The clock of turns, meters and audits.
inline policy::Time now() {
  return policy::Time(monotonic_ns());
}

class ShareDaemon {
 public:
  // Restores the shares on disk, then answers requests. `loop` and `host` must outlive this object.
  static Result<std::unique_ptr<ShareDaemon>> open(sys::Loop& loop, const sys::Host& host,
                                                   nvml_child::NvmlChildOptions sensor, Log log);
  ~ShareDaemon();
  ShareDaemon(const ShareDaemon&) = delete;
  ShareDaemon& operator=(const ShareDaemon&) = delete;

  // Raises the scheduling priority from now on. Only for a process that does nothing else.
  void raise_priority() { priority_ = RealtimePriority::take(); }

  // True if there is no share and no connected client.
  bool idle() const { return shares_.empty() && control_->clients() == 0; }
  bool served() const { return last_id_ != 0; }  // has ever had a share

 private:
  struct ShareHolder {  // the connection that a held share lives with
    ControlSocket::Id client = 0;
    sys::UniqueFd pidfd;  // after a restart of the daemon: the process in place of its connection
    sys::Loop::Watch end;
  };
  struct PendingRequest {  // for the driver's first answer
    ControlSocket::Id client = 0;
    Request question;
  };
  struct ShareGpuKey {  // a share on one of its GPUs
    policy::TenantId id = 0;
    std::uint32_t gpu = 0;
    // clang-tidy 14 reports a 0 in the generated code.
    // NOLINTNEXTLINE(modernize-use-nullptr)
    auto operator<=>(const ShareGpuKey&) const = default;
  };
  struct UsageAccount {
    std::deque<policy::Time> charged;               // at each of the last heartbeats
    std::map<std::uint32_t, ProcessUsage> before;   // by slot: when a reading of NVML began
    std::map<std::uint32_t, Overhead> overhead;     // by slot
    std::set<std::uint32_t> shown;                  // slots of the processes that NVML has reported
    std::map<std::uint32_t, int> unquiet_readings;  // by slot: readings in a row without a result
    std::uint64_t used = 0;                         // bytes, as NVML reports it
    std::uint64_t unfenced = 0;                     // the part used by processes that do not attach
    double measured = -1;                           // of the GPU's time, as NVML reports it
    policy::AuditState audit;
  };
  struct SeenProcess {
    policy::Time first{0};         // the first reading that had it
    std::uint64_t started_ns = 0;  // pids are reused
  };
  using Shares = std::map<std::string, std::unique_ptr<ServedShare>>;

  ShareDaemon(sys::Loop& loop, const sys::Host& host, Log log);
  Status start(nvml_child::NvmlChildOptions sensor);
  void recover();
  void recover_share(ShareRecord record);

  // Requests.
  std::optional<std::string> on_request(ControlSocket::Id client, std::string_view line);
  std::string answer(ControlSocket::Id client, const Request& question);
  Result<ShareState> make(ControlSocket::Id client, const Request& question);
  Result<ShareState> set(const Request& question);
  Status remove(const std::string& name);
  Result<ServedShare*> find(const std::string& name);
  Result<std::vector<policy::GpuCapacity>> choose_cards(const policy::Share& share,
                                                        policy::Overcommit overcommit) const;
  Status check_fit(const policy::Share& share, const policy::GpuCapacity& card,
                   policy::Overcommit overcommit) const;
  Status check_owner(const policy::Share& share, const policy::GpuCapacity& card) const;
  void release_driver(ControlSocket::Id client);
  void end_release(ControlSocket::Id client);
  std::vector<policy::Share> shares_on(const policy::GpuCapacity& card) const;
  std::uint64_t reserved_on(const policy::GpuCapacity& card) const;
  void answer_pending();

  // Creating and removing shares.
  Result<ServedShare*> serve(ShareRecord record, Origin origin);
  void drop(const std::string& name);
  void on_client_gone(ControlSocket::Id client);
  void set_turns();  // updates which shares take turns on which GPU
  ShareState state_of(const ServedShare& share) const;
  GpuState gpu_state(const ServedShare& share, std::uint32_t gpu) const;
  std::vector<ShareState> states() const;

  // Time.
  void on_report(ServedShare& share, std::uint32_t slot, const FenceReport& report);
  void on_left(ServedShare& share, std::uint32_t slot);
  void set_gate(const model::GpuUuid& gpu, policy::TenantId tenant, std::uint32_t word);
  void on_turn_timer();
  void arm();
  bool stay_alert();
  void on_heartbeat();
  void beat_often();  // while gates are used
  // Call this first in each callback that concerns turns: notices if this process did not run.
  void notice_pause();

  // Data from NVML.
  void on_reading_started();
  void on_reading(const model::Readings& readings, ReadingScope at);
  ServedShare* owner_of(pid_t pid, const model::GpuUuid& gpu) const;
  std::uint64_t started_ns(pid_t pid) const;
  using Processes = std::vector<const model::ProcessReading*>;
  void note_unmanaged(const model::GpuUuid& gpu, const Processes& processes, policy::Time at);
  void take_reading(ServedShare& share, std::uint32_t gpu, const Processes& processes);
  using ProcessesByShare = std::map<const ServedShare*, Processes>;
  Processes note_processes(const model::GpuReading& gpu, policy::Time at);
  Processes settled(const model::GpuUuid& gpu, const ServedShare& share, const Processes& processes,
                    policy::Time at) const;
  std::map<policy::TenantId, double> verified(const model::GpuUuid& gpu,
                                              const ProcessesByShare& of_share, policy::Time at);
  void audit_share(ServedShare& share, std::uint32_t gpu, const Processes& processes,
                   std::optional<double> verified, policy::Time at);
  void apply_finding(ServedShare& share, const policy::Finding& finding);
  void show_overhead(ServedShare& share, std::uint32_t gpu);
  void forget_exec(ServedShare& share, std::uint32_t gpu, const AttachedProcess& member);

  sys::Loop& loop_;
  const sys::Host& host_;
  Log log_;
  Shares shares_;
  std::map<policy::TenantId, ServedShare*> by_id_;
  policy::TenantId last_id_ = 0;
  std::map<std::string, ShareHolder> holders_;  // by share
  std::map<model::GpuUuid, std::unique_ptr<GpuTurnScheduler>> turns_;
  std::map<ShareGpuKey, UsageAccount> accounts_;
  std::map<model::GpuUuid, policy::Meter> meters_;
  std::map<model::GpuUuid, policy::UsageVerifier> verifiers_;
  std::map<model::GpuUuid, std::map<std::uint32_t, SeenProcess>> first_seen_;
  std::map<model::GpuUuid, std::vector<UnmanagedProcess>> unmanaged_;  // at the last reading
  ProcessTerminator terminator_;
  std::vector<ShareCgroup> removed_cgroups_;  // cgroups of removed shares
  std::vector<PendingRequest> pending_;
  // Clients for which the NVML process has ended, or kChangesAtStart, which no client has.
  static constexpr ControlSocket::Id kChangesAtStart = 0;
  std::set<ControlSocket::Id> released_for_;
  std::unique_ptr<ownership::ChangesAtStart> changes_at_start_;
  std::unique_ptr<GpuWatcher> watcher_;
  std::unique_ptr<ControlSocket> control_;
  sys::UniqueFd timer_;
  policy::Time armed_{0};
  policy::Time ran_at_{0};            // while gates are used
  policy::Time controlled_since_{0};  // without a pause
  std::optional<RealtimePriority> priority_;
  std::uint64_t asked_ns_ = 0;           // the reading of NVML in progress
  std::uint64_t asked_boottime_ns_ = 0;  // the same moment on CLOCK_BOOTTIME
  sys::Loop::Watch on_timer_;
  sys::Loop::Timer heartbeat_;
  sys::Loop::Timer gated_heartbeat_;  // while gates are used
};

}  // namespace gantry::daemon
