// SPDX-License-Identifier: Apache-2.0
// The node agent: does everything that a node needs for its GPUs, in one event loop. It reads the
// machine, prepares the driver files and CDI specifications, offers the GPUs to the kubelet,
// monitors their health and serves metrics.
#pragma once

#include "base/core/result.hpp"
#include "base/log/log.hpp"
#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "gpu/ownership/changes_at_start.hpp"
#include "node/agent/agent_handover.hpp"
#include "node/agent/current_offer.hpp"
#include "node/agent/gke_log.hpp"
#include "node/agent/machine_watcher.hpp"
#include "node/agent/metrics_server.hpp"
#include "node/agent/mps_supervisor.hpp"
#include "node/agent/node_reporter.hpp"
#include "node/agent/owner_requests.hpp"
#include "node/agent/ownership_filter.hpp"
#include "node/agent/plugins.hpp"
#include "node/agent/pod_shares.hpp"
#include "node/agent/pre_start_handler.hpp"
#include "node/agent/share_daemon_supervisor.hpp"
#include "node/agent/shared_gpu_reporter.hpp"
#include "node/kubelet/pod_resources.hpp"
#include "node/options/options.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gantry::agent {

class Agent {
 public:
  // `reload` reads the options again; it is called on SIGHUP.
  using Reload = std::function<Result<options::Options>()>;
  // Returns the options with which the CDI specifications of shares are written.
  using SpecOptions = std::function<Result<publish::ShareSpecOptions>(const sys::Host&)>;
  static Result<std::unique_ptr<Agent>> make(sys::Host host, options::Options options, Log log,
                                             Reload reload, SpecOptions spec_options);

  // Runs until SIGTERM or SIGINT.
  Status run();

 private:
  Agent(sys::Host host, options::Options options, Log log, Reload reload, SpecOptions spec_options);
  Status open();
  Status watch_signals();
  void on_signal();
  void decide_strategies();
  void on_machine(model::Inventory inventory);
  void on_no_nvml(const model::Inventory& seen);
  void first_machine();
  void serve_pages();
  void prepare_machine();
  // Whether the list of holders was read just now.
  enum class Certainty : std::uint8_t { Remembered, JustAsked };
  Result<resources::Offer> settled_offer(Certainty certainty);
  OwnershipFilter::GpuUsage in_use(Certainty certainty) const;
  std::vector<model::DeviceAllocation> known_holders() const;
  Status update_mps_daemons(resources::Offer& offer);
  void add_used_daemons(std::vector<mps::DaemonPlan>& plans) const;
  bool ready() const;
  void offer_machine();
  void publish(resources::Offer offer);
  void update_pod_shares();
  void report_shared();
  void recheck_held_back();
  void open_ledger();
  void take_owner_requests();
  OwnerRequests::AgentCallbacks owner_callbacks();
  void ask_kubelet(std::function<void(const Status& asked)> then);
  std::vector<std::string> pods_on(const OwnerRequests::LeaseTarget& wanted) const;
  bool is_withdrawn(const OwnerRequests::LeaseTarget& wanted) const;
  void offer_changes(Certainty certainty);
  AgentHandover::HandoverCallbacks handover_callbacks();
  void on_health();
  void on_notice(const health::HealthNotice& notice);
  std::string device_name(const model::GpuUuid& gpu) const;
  void find_cluster();
  void report_labels();
  // `then` is called when the list of holders has been read.
  void ask_holders(std::function<void()> then = nullptr);
  metrics::Snapshot snapshot();

  sys::Host host_;
  options::Options options_;
  Log log_;
  std::optional<GkeLog> gke_log_;  // set if the program was called by the name of GKE's plugin
  Reload reload_;
  SpecOptions spec_options_;
  std::string node_;
  resources::AllocatorOptions setting_;
  OwnershipFilter ownership_;
  bool machine_seen_ = false;
  bool handed_over_ = false;  // the next agent has taken over
  std::string no_nvml_;       // why NVML did not start, as logged last
  Status failure_;            // why run() ends by itself
  metrics::AgentCounters counters_;
  model::Inventory inventory_;
  std::optional<std::vector<model::DeviceAllocation>>
      holders_;  // nullopt: podresources has not answered yet
  std::shared_ptr<const CurrentOffer> offering_;

  std::unique_ptr<sys::Loop> loop_;
  sys::UniqueFd signals_;
  sys::Loop::Watch signal_watch_;
  sys::Loop::Timer holder_timer_;
  sys::Loop::Timer ledger_timer_;
  sys::Loop::Timer offer_timer_;
  sys::Loop::Timer label_timer_;
  sys::Loop::Timer beat_timer_;
  std::unique_ptr<kubelet::PodResources> pod_resources_;
  std::unique_ptr<PreStartHandler> pre_start_handler_;
  std::unique_ptr<PodShares> pod_shares_;  // nullptr: no GPU is offered in shares
  std::unique_ptr<SharedGpuReporter> shares_reporter_;
  std::unique_ptr<Plugins> plugins_;
  std::unique_ptr<ShareDaemonSupervisor> shares_;
  std::unique_ptr<MpsSupervisor> mps_;  // nullptr: no GPU is shared with MPS
  std::unique_ptr<ownership::ChangesAtStart> changes_at_start_;
  std::unique_ptr<MachineWatcher> machine_watcher_;
  std::unique_ptr<MetricsServer> pages_;
  std::unique_ptr<AgentHandover> handover_;
  std::unique_ptr<NodeReporter> reporter_;         // nullptr: there is no API server
  std::unique_ptr<OwnerRequests> owner_requests_;  // nullptr: the ledger is not open yet
};

}  // namespace gantry::agent
