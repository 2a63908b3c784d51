// SPDX-License-Identifier: Apache-2.0
#include "node/agent/agent.hpp"

#include "base/core/text.hpp"
#include "container/driver_dir/current.hpp"
#include "container/grants/grants.hpp"
#include "net/kube/node_name.hpp"
#include "node/agent/derived_options.hpp"
#include "node/agent/engine_info.hpp"
#include "node/agent/node_labels.hpp"
#include "node/agent/node_objects.hpp"
#include "node/agent/prepare.hpp"
#include "node/agent/retired.hpp"
#include "node/agent/shared_node_info.hpp"
#include "node/kubelet/checkpoint.hpp"
#include "node/labels/features_file.hpp"
#include "node/metrics/pages.hpp"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kAgentComponent = "agent";
constexpr auto kAskHolders = 5s;
// Between reads of the kernel's list: a change must be seen within two seconds.
constexpr auto kLookInterval = 1'750ms;
constexpr auto kOfferAgain = 1s;
constexpr auto kLabelsLater = 100ms;
constexpr auto kLedgerAgain = 500ms;
constexpr auto kGkeBeat = 60s;
constexpr std::string_view kAgentSocket = "/run/gantry/agent.sock";

}  // namespace

Agent::Agent(sys::Host host, options::Options options, Log log, Reload reload,
             SpecOptions spec_options)
    : host_(std::move(host)),
      options_(std::move(options)),
      log_(std::move(log)),
      reload_(std::move(reload)),
      spec_options_(std::move(spec_options)),
      node_(kube::node_name(options_.kube.node_name)),
      ownership_(host_, log_) {
  if (!is_gke(options_)) return;
  gke_log_.emplace(log_, options_.gke.plugin_directory);
  log_ = log_.quiet();
}

Result<std::unique_ptr<Agent>> Agent::make(sys::Host host, options::Options options, Log log,
                                           Reload reload, SpecOptions spec_options) {
  std::unique_ptr<Agent> agent(new Agent(std::move(host), std::move(options), std::move(log),
                                         std::move(reload), std::move(spec_options)));
  GANTRY_CHECK(agent->open());
  return agent;
}

Status Agent::open() {
  counters_.started_unix_s = std::time(nullptr);
  GANTRY_TRY(loop_, sys::Loop::make());
  GANTRY_CHECK(watch_signals());
  (void)ownership_.open();  // from here on no change begins of which the next line does not know
  changes_at_start_ = std::make_unique<ownership::ChangesAtStart>(
      *loop_, host_, [this] { machine_watcher_->resume(MachineWatcher::kAtStart); });
  // First of the rest, because starting NVML takes longer than everything else together.
  GANTRY_TRY(
      machine_watcher_,
      MachineWatcher::open(
          *loop_, host_, {.poll_interval = kLookInterval, .released = changes_at_start_->why()},
          health_options(options_), log_, counters_,
          {.machine = [this](model::Inventory found) { on_machine(std::move(found)); },
           .no_nvml = [this](const model::Inventory& seen) { on_no_nvml(seen); },
           .health = [this] { on_health(); },
           .notice = [this](const health::HealthNotice& said) { on_notice(said); }}));
  decide_strategies();
  pod_resources_ = std::make_unique<kubelet::PodResources>(
      *loop_, kubelet::PodResources::Options{.path = host_.outside(options_.pod_resources_socket)});
  const auto directory = plugin_directory(options_);
  pre_start_handler_ = std::make_unique<PreStartHandler>(*loop_, host_, directory, log_);
  plugins_ = std::make_unique<Plugins>(
      *loop_,
      kubelet::RegistrarOptions{
          .directory = host_.outside(directory),
          .names = gke_log_ ? kubelet::SocketNaming::Gke : kubelet::SocketNaming::Ours},
      pod_resources_.get(), log_, counters_,
      [this](const std::string& resource, kubelet::PreStartRequest question) {
        pre_start_handler_->prepare(resource, std::move(question), offering_);
      });
  if (gke_log_) plugins_->set_gke_log(&*gke_log_);
  if (!options_.kubelet_socket.empty()) GANTRY_CHECK(plugins_->start());
  pages_ = std::make_unique<MetricsServer>(
      *loop_, log_, counters_,
      MetricsServer::Source{.snapshot = [this] { return snapshot(); },
                            .ready = [this] { return ready(); }});
  if (!gke_log_) serve_pages();
  pre_start_handler_->remove_grants_of_unknown_pods();
  holder_timer_ = loop_->every(kAskHolders, [this] {
    ask_holders([this] { pre_start_handler_->remove_grants_of_gone_pods(*holders_); });
  });
  shares_ = std::make_unique<ShareDaemonSupervisor>(
      *loop_, host_, log_,
      ShareDaemonSupervisor::Options{.program = {"/proc/self/exe", "share", "serve"}});
  find_cluster();
  open_ledger();
  handover_ = std::make_unique<AgentHandover>(*loop_, host_.outside(kAgentSocket), log_,
                                              handover_callbacks());
  plugins_->on_watched([this] { handover_->look_soon(); });
  return {};
}

Status Agent::watch_signals() {
  sigset_t mask;
  ::sigemptyset(&mask);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&mask, signal);
  if (::sigprocmask(SIG_BLOCK, &mask, nullptr) != 0) return Error::sys(errno, "sigprocmask");
  signals_ = sys::UniqueFd(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return Error::sys(errno, "signalfd");
  GANTRY_TRY(signal_watch_,
             loop_->watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { on_signal(); }));
  return {};
}

void Agent::on_signal() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGHUP) {
      log_.info(kAgentComponent, "received a signal, exiting", {{"signal", info.ssi_signo}});
      return loop_->stop();
    }
    auto options = reload_();
    if (!options.ok()) {
      log_.error(kAgentComponent, "the configuration was not changed", {{"err", options.error()}});
      continue;
    }
    log_.info(kAgentComponent, "the configuration was read again");
    options_ = *std::move(options);
    machine_watcher_->set_health_options(health_options(options_));
    decide_strategies();
    if (!offering_) continue;
    prepare_machine();
    offer_machine();
  }
}

void Agent::serve_pages() {
  if (options_.gke.metrics_port > 0) pages_->serve_gke(options_.gke.metrics_port);
  if (options_.exporter_port > 0 && !gke_log_) pages_->serve_dcgm(options_.exporter_port);
}

// How containers get their devices: as configured, or by what the engine supports.
void Agent::decide_strategies() {
  setting_.engine_root = driver_dir::simulated_engine_root(host_);
  setting_.strategies = options_.list_strategies;
  if (!setting_.strategies.empty() || gke_log_) return;
  const auto engine = detect_engine(host_, options_.cri_socket);
  setting_.strategies = {engine.has_cdi ? options::ListStrategy::CdiCri
                                        : options::ListStrategy::Direct};
  log_.info(kAgentComponent,
            engine.has_cdi ? LogText("the engine injects CDI devices, answers name them")
                           : LogText("answers contain device nodes and mounts"),
            {{"engine", engine.name}});
  options_.list_strategies = setting_.strategies;
}

void Agent::on_machine(model::Inventory inventory) {
  inventory_ = std::move(inventory);
  if (owner_requests_) owner_requests_->machine_known();
  if (inventory_.gpus.empty()) {
    log_.warning(kAgentComponent, "no GPUs found, waiting for GPUs");
    if (!offering_) return;
  }
  if (!std::exchange(machine_seen_, true) && gke_log_) first_machine();
  prepare_machine();
  offer_machine();
}

// No program can use these GPUs, so the agent offers none. The node's condition names the cause.
void Agent::on_no_nvml(const model::Inventory& seen) {
  const auto& why = seen.driver.nvml_error;
  if (options_.fail_on_init_error) {
    failure_ = Error(Errc::Unsupported,
                     fmt::format("the driver does not start: {}; `gantry doctor` says why, "
                                 "--fail-on-init-error=false waits for it",
                                 why));
    return loop_->stop();
  }
  if (std::exchange(no_nvml_, why) == why) return;
  log_.warning(kAgentComponent, "the driver does not start, no GPU is offered until it does",
               {{"gpus", seen.gpus.size()}, {"why", why}});
  if (reporter_) reporter_->health(machine_watcher_->health(), std::time(nullptr));
}

// GKE's containers mount the driver's directory directly.
void Agent::prepare_machine() {
  if (!gke_log_ && options_.publish)
    prepare(inventory_, {host_, options_, setting_, log_, counters_});
}

// In GKE's order: metrics are served only if they were requested and there are GPUs.
void Agent::first_machine() {
  if (options_.gke.container_gpu_metrics) {
    gke_log_->metrics(options_.gke, inventory_);
    serve_pages();
  }
  if (options_.gke.health_monitoring) {
    if (const auto offer = resources::resources(inventory_, options_); offer.ok())
      gke_log_->health_checks(offer->resources);
  }
  gke_log_->serving();
}

Result<resources::Offer> Agent::settled_offer(Certainty certainty) {
  GANTRY_TRY(auto offer, resources::resources(inventory_, options_));
  if (const auto pause = ownership_.settle(offer, in_use(certainty)))
    offer_timer_ = loop_->after(*pause, [this] { recheck_held_back(); });
  GANTRY_CHECK(update_mps_daemons(offer));
  return offer;
}

// Starts the daemons for resources shared with MPS; a resource without its daemon is not offered.
// GKE's nodes have their own daemon.
Status Agent::update_mps_daemons(resources::Offer& offer) {
  if (gke_log_) return {};
  GANTRY_TRY(auto plans, mps::plan_daemons(inventory_, offer.resources));
  if (plans.empty() && !mps_) return {};
  if (mps_) add_used_daemons(plans);
  if (!mps_)
    mps_ = std::make_unique<MpsSupervisor>(*loop_, host_, log_, [this] { offer_machine(); });
  mps_->want(std::move(plans), options_.mps_root);
  mps_->withdraw_unready(offer);
  return {};
}

// Keeps daemons that have clients, even if their resource is no longer offered.
void Agent::add_used_daemons(std::vector<mps::DaemonPlan>& plans) const {
  const auto holders = known_holders();
  for (const auto& kept : mps_->plans()) {
    const auto same = [&](const auto& other) { return other.resource == kept.resource; };
    const auto is_client = [&](const model::DeviceAllocation& holder) {
      return holder.resource == kept.resource &&
             std::any_of(holder.ids.begin(), holder.ids.end(),
                         [](const auto& id) { return id.find("::") != id.npos; });
    };
    if (std::any_of(plans.begin(), plans.end(), same)) continue;
    if (std::any_of(holders.begin(), holders.end(), is_client)) plans.push_back(kept);
  }
}

bool Agent::ready() const {
  return offering_ && plugins_->all_registered() && (!mps_ || mps_->all_ready());
}

// By GPU: the pods that the kubelet gave it to, and the processes that NVML sees on it.
OwnershipFilter::GpuUsage Agent::in_use(Certainty certainty) const {
  OwnershipFilter::GpuUsage found{.certain = certainty == Certainty::JustAsked};
  const metrics::Snapshot known{
      .inventory = inventory_,
      .holders = known_holders(),
      .offered = offering_ ? offering_->offer.resources : std::vector<model::AdvertisedResource>{}};
  for (const auto& entry : metrics::attribute_devices(known))
    found.pods[entry.gpu.text].push_back(
        {.pod = to_string(entry.holder.pod),
         .resource = entry.holder.resource,
         .device = entry.mig.text.empty() ? entry.gpu.text : entry.mig.text});
  const auto granted = grants::list(host_);
  for (const auto& written : granted.ok() ? *granted : std::vector<grants::GrantFile>{}) {
    if (!written.grant.share) continue;
    for (const auto& part : written.grant.share->parts)
      found.pods[part.uuid.text].push_back({.pod = to_string(written.grant.pod),
                                            .resource = std::string(resources::kShareResource),
                                            .device = part.uuid.text});
  }
  for (const auto& gpu : machine_watcher_->readings().gpus) {
    for (const auto& process : gpu.processes) found.pids[gpu.uuid.text].push_back(process.pid);
  }
  return found;
}

// Until podresources has answered: the holders from the kubelet's checkpoint. It has no pod names,
// and some pods may have ended.
std::vector<model::DeviceAllocation> Agent::known_holders() const {
  if (holders_) return *holders_;
  auto checkpoint = kubelet::read_checkpoint(host_.outside(plugin_directory(options_)));
  if (!checkpoint.ok()) return {};
  for (auto& holder : checkpoint->holders) holder.pod.name = holder.pod.uid;
  return std::move(checkpoint->holders);
}

// Asks podresources again, because a pod may have got the GPU just before it was withdrawn.
void Agent::recheck_held_back() {
  ask_kubelet([this](const Status& asked) {
    if (asked.ok()) return offer_changes(Certainty::JustAsked);
    log_.detail(1, kAgentComponent, "cannot read podresources, trying again",
                {{"err", asked.error()}});
    offer_timer_ = loop_->after(kOfferAgain, [this] { recheck_held_back(); });
  });
}

void Agent::ask_kubelet(std::function<void(const Status& asked)> then) {
  if (options_.kubelet_socket.empty()) return then({});
  pod_resources_->holders_now(
      [this, then = std::move(then)](const Result<std::vector<model::DeviceAllocation>>& holders) {
        if (!holders.ok()) return then(holders.error());
        holders_ = *holders;
        then({});
      });
}

void Agent::offer_changes(Certainty certainty) {
  auto offer = settled_offer(certainty);
  if (!offer.ok())
    return log_.error(kAgentComponent, "cannot offer the GPUs", {{"err", offer.error()}});
  if (!offering_ || *offer != offering_->offer) publish(*std::move(offer));
}

// The previous agent has the ledger open until it exits.
void Agent::open_ledger() {
  if (!ownership_.open()) {
    // The previous agent may have leased a GPU to a command since our offer.
    if (offering_ && ownership_.another_has_ledger()) offer_changes(Certainty::Remembered);
    ledger_timer_ = loop_->after(kLedgerAgain, [this] { open_ledger(); });
    return;
  }
  take_owner_requests();
  if (offering_) offer_machine();
}

// Commands that change the owner of a GPU ask the process that has the ledger.
void Agent::take_owner_requests() {
  owner_requests_ = std::make_unique<OwnerRequests>(*loop_, host_, log_, ownership_,
                                                    *machine_watcher_, owner_callbacks());
  const auto listening = owner_requests_->listen();
  if (!listening.ok())
    log_.warning(kAgentComponent, "commands cannot change the owner of a GPU",
                 {{"err", listening.error()}});
}

OwnerRequests::AgentCallbacks Agent::owner_callbacks() {
  return {.withdrawn =
              [this](const OwnerRequests::LeaseTarget& wanted) { return is_withdrawn(wanted); },
          .ask_kubelet =
              [this](std::function<void(const Status&)> then) { ask_kubelet(std::move(then)); },
          .pods = [this](const OwnerRequests::LeaseTarget& wanted) { return pods_on(wanted); },
          .offer =
              [this] {
                if (offering_) offer_changes(Certainty::Remembered);
              }};
}

// A new offer may have failed: what the kubelet was told last counts, not what was decided.
bool Agent::is_withdrawn(const OwnerRequests::LeaseTarget& wanted) const {
  if (!offering_ || options_.kubelet_socket.empty()) return true;
  const auto& gpu = wanted.gpu;
  const auto kept = wanted.parts ? wanted.parts->kept : std::vector<std::string>{};
  if (resources::offers_gpu(offering_->offer, gpu, kept)) return false;
  const auto& uses = offering_->offer.uses;
  const bool known = std::any_of(uses.begin(), uses.end(),
                                 [&](const resources::GpuUse& use) { return use.pci == gpu; });
  return !known || ownership_.withdrawn(gpu);
}

std::vector<std::string> Agent::pods_on(const OwnerRequests::LeaseTarget& wanted) const {
  const auto found = std::find_if(inventory_.gpus.begin(), inventory_.gpus.end(),
                                  [&](const model::Gpu& known) { return known.pci == wanted.gpu; });
  if (found == inventory_.gpus.end()) return {};
  const auto used = in_use(Certainty::JustAsked);
  const auto pods = used.pods.find(found->uuid.text);
  if (pods == used.pods.end()) return {};
  std::vector<std::string> names;
  for (const auto& holding : pods->second) {
    const auto is_held = [&](const std::string& kept) { return kept == holding.device; };
    if (wanted.parts && std::any_of(wanted.parts->kept.begin(), wanted.parts->kept.end(), is_held))
      continue;
    auto name = fmt::format("pod {}", holding.pod);
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  return names;
}

AgentHandover::HandoverCallbacks Agent::handover_callbacks() {
  return {.registered = [this] { return offering_ && plugins_->all_registered(); },
          .connections =
              [this] {
                std::vector<kubelet::LentConnection> all;
                for (const auto* plugin : plugins_->plugins()) {
                  for (const int fd : plugin->connections())
                    all.push_back({plugin->resource(), fd});
                }
                return all;
              },
          .offers =
              [this](const std::string& resource) {
                const auto all = plugins_->plugins();
                return std::any_of(all.begin(), all.end(), [&](const auto* plugin) {
                  return plugin->resource() == resource;
                });
              },
          .quiet =
              [this] {
                const auto all = plugins_->plugins();
                return std::all_of(all.begin(), all.end(),
                                   [](const auto* plugin) { return plugin->quiet(); });
              },
          .given =
              [this] {
                log_.info(kAgentComponent, "the next agent has taken over, exiting");
                handed_over_ = true;
                loop_->stop();
              }};
}

void Agent::offer_machine() {
  // Later, because reading the PCI configuration space takes longer than registering. If the MIG
  // layout cannot be offered, the labels say so.
  label_timer_ = loop_->after(kLabelsLater, [this] { report_labels(); });
  auto offer = settled_offer(Certainty::Remembered);
  if (!offer.ok())
    return log_.error(kAgentComponent, "cannot offer the GPUs", {{"err", offer.error()}});
  publish(*std::move(offer));
}

void Agent::publish(resources::Offer offer) {
  auto offering = make_current_offer(inventory_, std::move(offer), options_, setting_);
  if (!offering.ok())
    return log_.error(kAgentComponent, "cannot offer the GPUs", {{"err", offering.error()}});
  offering_ = *std::move(offering);
  for (const auto& note : offering_->offer.notes)
    log_.warning(kAgentComponent, "offer is limited", {{"why", note}});
  for (const auto& note : offering_->answers.notes())
    log_.warning(kAgentComponent, "answers are limited", {{"why", note}});
  update_pod_shares();
  report_shared();
  plugins_->offer(offering_, machine_watcher_->health());
  if (handover_) handover_->look_soon();
  if (reporter_) reporter_->health(machine_watcher_->health(), std::time(nullptr));
}

// Also needed if GPUs are no longer shared but an earlier agent left shares.
void Agent::update_pod_shares() {
  if (pod_shares_ || gke_log_) return;
  const auto granted = grants::list(host_);
  const auto in_slots = [](const grants::GrantFile& written) {
    return written.grant.share.has_value();
  };
  const bool some = granted.ok() && std::any_of(granted->begin(), granted->end(), in_slots);
  if (offering_->offer.shared.cards.empty() && !some) return;
  auto access = kube::find_client_config(options_.kube.kubeconfig, kube::Caller::Node);
  PodShares::Options options{
      .node = node_, .share_daemon = {"/proc/self/exe", "share", "serve"}, .spec = spec_options_};
  if (access.ok()) {
    options.access = *access;
    shares_reporter_ = std::make_unique<SharedGpuReporter>(
        *std::move(access), SharedGpuReporter::Options{.node = node_}, log_);
  } else {
    log_.error(kAgentComponent, "cannot read the pods that say which GPU each pod has",
               {{"err", access.error()}});
  }
  pod_shares_ = std::make_unique<PodShares>(*loop_, host_, std::move(options), log_);
  pre_start_handler_->set_pod_shares(pod_shares_.get());
}

void Agent::report_shared() {
  if (!pod_shares_ || !offering_) return;
  auto facts = shared_node_info(node_, inventory_, offering_->offer, machine_watcher_->health());
  if (shares_reporter_) shares_reporter_->set_report(shared_node_report(facts));
  pod_shares_->set_machine({.facts = std::move(facts), .inventory = inventory_});
}

// Labels, events and conditions need the API server; GPUs in pods do not.
void Agent::find_cluster() {
  const auto& gke = options_.gke;
  if (gke_log_ && !gke.health_monitoring && !gke.publish_driver_version) return;
  auto access = kube::find_client_config(options_.kube.kubeconfig, kube::Caller::Node);
  if (!access.ok()) {
    log_.info(kAgentComponent, "no labels, events or conditions are written",
              {{"err", access.error()}});
    return;
  }
  log_.info(kAgentComponent, "reporting this node to the API server",
            {{"node", node_}, {"config", access->from}});
  reporter_ = std::make_unique<NodeReporter>(
      *std::move(access),
      NodeReporter::Options{
          .node = node_,
          .name_space = options_.kube.name_space,
          .pod = options_.kube.pod_name,
          .prefer_node_feature = options_.features.use_node_feature_api,
          .style = gke_log_ ? NodeReporter::ReportStyle::Gke : NodeReporter::ReportStyle::Ours,
          .boot_id = machine_watcher_->boot_id()},
      log_);
  if (gke_log_)
    beat_timer_ = loop_->every(kGkeBeat, [this] { reporter_->beat(std::time(nullptr)); });
}

// To node feature discovery if its directory exists, and to the API server.
void Agent::report_labels() {
  if (gke_log_) {
    if (reporter_ && options_.gke.publish_driver_version)
      reporter_->driver_version(inventory_.driver.version);
    return;
  }
  if (!options_.features.labels) return;
  const auto labels = node_labels(host_, inventory_, options_, counters_.started_unix_s);
  const auto& file = options_.features.output_file;
  if (!file.empty() && host_.info(parent_directory(file)).ok()) {
    const auto written = labels::write_features_file(host_.outside(file), labels);
    if (!written.ok())
      log_.warning(kAgentComponent, "cannot write the labels", {{"err", written.error()}});
  }
  if (reporter_) reporter_->labels(labels);
}

void Agent::on_health() {
  report_shared();
  plugins_->set_health(machine_watcher_->health());
  if (reporter_) reporter_->health(machine_watcher_->health(), std::time(nullptr));
}

// "nvidia0"; "" if it is not known.
std::string Agent::device_name(const model::GpuUuid& gpu) const {
  for (const auto& known : inventory_.gpus) {
    if (known.uuid == gpu && known.minor) return fmt::format("nvidia{}", *known.minor);
  }
  return "";
}

void Agent::on_notice(const health::HealthNotice& notice) {
  if (reporter_) reporter_->event(notice);
  if (gke_log_ && notice.xid) return gke_log_->xid(notice, device_name(notice.gpu));
  const auto gpu = LogField::unless_empty("gpu", notice.gpu.text);
  const auto mig = LogField::unless_empty("mig", notice.mig.text);
  const auto remedy = LogField::unless_empty("remedy", notice.remedy);
  if (notice.critical) {
    log_.error("health", "device unhealthy",
               {gpu, mig, {"xid", notice.xid}, {"cause", notice.text}, remedy});
  } else {
    log_.info("health", "device event",
              {gpu, mig, {"xid", notice.xid}, {"cause", notice.text}, remedy});
  }
}

void Agent::ask_holders(std::function<void()> then) {
  pod_resources_->holders(
      [this, then = std::move(then)](const Result<std::vector<model::DeviceAllocation>>& holders) {
        if (!holders.ok())
          return log_.detail(2, kAgentComponent, "cannot read podresources",
                             {{"err", holders.error()}});
        holders_ = *holders;
        if (then) then();
      });
}

metrics::Snapshot Agent::snapshot() {
  machine_watcher_->request_full_readings();
  ask_holders();
  // A grant says which GPU a pod's share is on. Without shares, reading a grant of each container
  // would be most of a scrape's time.
  std::vector<grants::GrantFile> granted;
  if (pod_shares_) {
    if (auto listed = grants::list(host_); listed.ok()) granted = *std::move(listed);
  }
  return {
      .node = node_,
      .version = GANTRY_VERSION,
      .inventory = inventory_,
      .readings = machine_watcher_->readings(),
      .holders = holders_by_gpu(holders_.value_or(std::vector<model::DeviceAllocation>{}), granted),
      .offered = offering_ ? offering_->offer.resources : std::vector<model::AdvertisedResource>{},
      .health = machine_watcher_->health(),
      .counters = counters_,
      .driver_answers = machine_watcher_->driver_answers()};
}

Status Agent::run() {
  auto ended = loop_->run();
  if (!failure_.ok()) return failure_;
  // Destructors would close the kubelet's connections; the next agent keeps them open.
  if (handed_over_ && !options_.kube.pod_name.empty())
    log_.error(
        kAgentComponent, "cannot wait for the end of the pod",
        {{"err", retire(gke_log_ ? options_.gke.metrics_port : options_.exporter_port).error()}});
  if (handed_over_) std::_Exit(0);
  return ended;
}

}  // namespace gantry::agent
