// SPDX-License-Identifier: Apache-2.0
// The node agent: everything a node does about its GPUs, in one loop. It reads the machine,
// prepares what containers start from, offers the GPUs to the kubelet, watches their health and
// shows it.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "node/agent/eyes.hpp"
#include "node/agent/gke_voice.hpp"
#include "node/agent/log.hpp"
#include "node/agent/mps_keeper.hpp"
#include "node/agent/offering.hpp"
#include "node/agent/ownership.hpp"
#include "node/agent/pages.hpp"
#include "node/agent/plugins.hpp"
#include "node/agent/reporter.hpp"
#include "node/agent/share_keeper.hpp"
#include "node/agent/shares_reporter.hpp"
#include "node/agent/slots.hpp"
#include "node/agent/starts.hpp"
#include "node/agent/succession.hpp"
#include "node/kubelet/pod_resources.hpp"
#include "node/options/options.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gantry::agent {

class Agent {
 public:
  // `reload` reads the options anew (SIGHUP).
  using Reload = std::function<Result<options::Options>()>;
  // What specifications of shares are made with.
  using SpecOptions = std::function<Result<publish::ShareSpecOptions>(const sys::Host&)>;
  static Result<std::unique_ptr<Agent>> make(sys::Host host, options::Options options, Log log,
                                             Reload reload, SpecOptions spec_options);

  // Until SIGTERM or SIGINT.
  Status run();

 private:
  Agent(sys::Host host, options::Options options, Log log, Reload reload, SpecOptions spec_options);
  Status open();
  Status listen_to_signals();
  void on_signal();
  void decide_strategies();
  void on_machine(model::Inventory inventory);
  void first_machine();
  void serve_pages();
  void prepare_machine();
  enum class Certainty : std::uint8_t { Remembered, JustAsked };  // about who holds what
  Result<resources::Offer> settled_offer(Certainty certainty);
  Ownership::InUse in_use(Certainty certainty) const;
  std::vector<model::Holder> known_holders() const;
  Status keep_mps(resources::Offer& offer);
  void add_used_daemons(std::vector<mps::DaemonPlan>& plans) const;
  bool ready() const;
  void offer_machine();
  void publish(resources::Offer offer);
  void keep_slots();
  void tell_shared();
  void look_at_held_back();
  void offer_held_back();
  void open_ledger();
  Succession::Side succession_side();
  void on_health();
  void on_notice(const health::Notice& notice);
  std::string device_name(const model::GpuUuid& gpu) const;
  void find_cluster();
  void tell_labels();
  void ask_holders(std::function<void()> then = nullptr);  // `then`: when they are known
  metrics::Snapshot snapshot();

  sys::Host host_;
  options::Options options_;
  Log log_;
  std::optional<GkeVoice> voice_;  // when called by the name of GKE's plugin
  Reload reload_;
  SpecOptions spec_options_;
  std::string node_;
  resources::AnswerSetting setting_;
  Ownership ownership_;
  bool machine_seen_ = false;
  bool handed_over_ = false;  // to the next agent
  metrics::Counters counters_;
  model::Inventory inventory_;
  std::optional<std::vector<model::Holder>> holders_;  // none: podresources has not answered yet
  std::shared_ptr<const Offering> offering_;

  std::unique_ptr<sys::Loop> loop_;
  sys::UniqueFd signals_;
  sys::Loop::Watch signal_watch_;
  sys::Loop::Timer holder_timer_;
  sys::Loop::Timer ledger_timer_;
  sys::Loop::Timer offer_timer_;
  sys::Loop::Timer label_timer_;
  sys::Loop::Timer beat_timer_;
  std::unique_ptr<kubelet::PodResources> pod_resources_;
  std::unique_ptr<Starts> starts_;
  std::unique_ptr<Slots> slots_;  // nullptr: nothing is in shares
  std::unique_ptr<SharesReporter> shares_reporter_;
  std::unique_ptr<Plugins> plugins_;
  std::unique_ptr<ShareKeeper> shares_;
  std::unique_ptr<MpsKeeper> mps_;  // nullptr: nothing is shared by MPS
  std::unique_ptr<Eyes> eyes_;
  std::unique_ptr<Pages> pages_;
  std::unique_ptr<Succession> succession_;
  std::unique_ptr<Reporter> reporter_;  // nullptr: no API server
};

}  // namespace gantry::agent
