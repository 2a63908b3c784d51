// SPDX-License-Identifier: Apache-2.0
// The keeper: shares, the turns of their GPUs, what NVML says of their processes. One thread, one
// loop; everything that may take long (NVML) is a child's business.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "sharing/daemon/accounts.hpp"
#include "sharing/daemon/control_socket.hpp"
#include "sharing/daemon/gpu_turns.hpp"
#include "sharing/daemon/log.hpp"
#include "sharing/daemon/precedence.hpp"
#include "sharing/daemon/questions.hpp"
#include "sharing/daemon/serve.hpp"
#include "sharing/daemon/served_share.hpp"
#include "sharing/daemon/stopper.hpp"
#include "sharing/daemon/watcher.hpp"
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

// As turns, meters and audits count.
inline policy::Time now() {
  return policy::Time(monotonic_ns());
}

class Keeper {
 public:
  // Takes up the shares on disk, then answers. `loop` and `host` outlive it.
  static Result<std::unique_ptr<Keeper>> open(sys::Loop& loop, const sys::Host& host,
                                              nvml_child::SensorOptions sensor, Log log);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  // Before others on the processor, from now on: for a process that does nothing else.
  void take_precedence() { precedence_ = Precedence::take(); }

  // No share, and nobody asks.
  bool idle() const { return shares_.empty() && control_->clients() == 0; }
  bool served() const { return last_id_ != 0; }  // has ever had one

 private:
  struct Holding {  // what a held share lives with
    ControlSocket::Id client = 0;
    sys::UniqueFd pidfd;  // after a restart of ours: the process instead of its connection
    sys::Loop::Watch end;
  };
  struct Waiting {  // for the first word of the driver
    ControlSocket::Id client = 0;
    Question question;
  };
  struct Place {  // a share on one of its GPUs
    policy::TenantId id = 0;
    std::uint32_t gpu = 0;
    // clang-tidy 14 sees a 0 in what the compiler makes of it.
    // NOLINTNEXTLINE(modernize-use-nullptr)
    auto operator<=>(const Place&) const = default;
  };
  struct Account {
    std::deque<policy::Time> charged;            // at each of the last beats
    std::map<std::uint32_t, Usage> before;       // by slot: when a picture was begun
    std::map<std::uint32_t, Overhead> overhead;  // by slot
    std::set<std::uint32_t> shown;               // slots of those that NVML has shown
    std::map<std::uint32_t, int> restless;       // by slot: looks in a row that said nothing
    std::uint64_t used = 0;                      // bytes, as NVML has it
    std::uint64_t unfenced = 0;                  // those of them by processes that do not attach
    double measured = -1;                        // of the GPU's time, as NVML has it
    policy::AuditState audit;
  };
  using Shares = std::map<std::string, std::unique_ptr<ServedShare>>;

  Keeper(sys::Loop& loop, const sys::Host& host, Log log);
  Status start(nvml_child::SensorOptions sensor);
  void recover();
  void take_up(Record record);

  // Questions.
  std::optional<std::string> on_question(ControlSocket::Id client, std::string_view line);
  std::string answer(ControlSocket::Id client, const Question& question);
  Result<ShareState> make(ControlSocket::Id client, const Question& question);
  Result<ShareState> set(const Question& question);
  Status remove(const std::string& name);
  Result<ServedShare*> find(const std::string& name);
  Result<std::vector<policy::Card>> choose_cards(const policy::Share& share,
                                                 policy::Overcommit overcommit) const;
  Status check_fit(const policy::Share& share, const policy::Card& card,
                   policy::Overcommit overcommit) const;
  std::vector<policy::Share> shares_on(const policy::Card& card) const;
  std::uint64_t promised_on(const policy::Card& card) const;
  void answer_waiting();

  // Shares come and go.
  Result<ServedShare*> serve(Record record, Origin origin);
  void drop(const std::string& name);
  void on_client_gone(ControlSocket::Id client);
  void set_turns();  // who takes turns on which GPU now
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
  void on_beat();

  // What NVML says.
  void on_asking();
  void on_picture(const model::Readings& readings, Looked at);
  ServedShare* owner_of(pid_t pid, const model::GpuUuid& gpu) const;
  using Processes = std::vector<const model::ProcessReading*>;
  void note_strangers(const model::GpuUuid& gpu, const Processes& processes);
  void take_reading(ServedShare& share, std::uint32_t gpu, const Processes& processes);
  using OfShare = std::map<const ServedShare*, Processes>;
  void note_processes(const model::GpuReading& gpu, policy::Time at);
  Processes settled(const model::GpuUuid& gpu, const Processes& processes, policy::Time at) const;
  std::map<policy::TenantId, double> proven(const model::GpuUuid& gpu, const OfShare& of_share,
                                            policy::Time at);
  void judge(ServedShare& share, std::uint32_t gpu, const Processes& processes,
             std::optional<double> proven, policy::Time at);
  void act_on(ServedShare& share, const policy::Finding& finding);
  void show_overhead(ServedShare& share, std::uint32_t gpu);
  void forget_exec(ServedShare& share, std::uint32_t gpu, const Member& member);

  sys::Loop& loop_;
  const sys::Host& host_;
  Log log_;
  Shares shares_;
  std::map<policy::TenantId, ServedShare*> by_id_;
  policy::TenantId last_id_ = 0;
  std::map<std::string, Holding> holdings_;  // by share
  std::map<model::GpuUuid, std::unique_ptr<GpuTurns>> turns_;
  std::map<Place, Account> accounts_;
  std::map<model::GpuUuid, policy::Meter> meters_;
  std::map<model::GpuUuid, policy::Witness> witnesses_;
  std::map<model::GpuUuid, std::map<std::uint32_t, policy::Time>> first_seen_;  // processes
  std::map<model::GpuUuid, std::vector<StrangerState>> strangers_;  // as of the last picture
  Stopper stopper_;
  std::vector<ProcessGroup> leaving_;  // cgroups of shares that are gone
  std::vector<Waiting> waiting_;
  std::unique_ptr<Watcher> watcher_;
  std::unique_ptr<ControlSocket> control_;
  sys::UniqueFd timer_;
  policy::Time armed_{0};
  std::optional<Precedence> precedence_;
  std::uint64_t asked_ns_ = 0;  // the picture that is being taken
  sys::Loop::Watch on_timer_;
  sys::Loop::Timer beat_;
};

}  // namespace gantry::daemon
