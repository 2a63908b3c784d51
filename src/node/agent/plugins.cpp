// SPDX-License-Identifier: Apache-2.0
#include "node/agent/plugins.hpp"

#include "gpu/health/health.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::agent {
namespace {

constexpr std::string_view kPluginsComponent = "kubelet";

// Tokens do not belong to a GPU, so they are healthy as long as one GPU is; the scheduler avoids
// the unhealthy ones.
bool any_usable(const resources::SharedGpus& shared,
                const std::vector<model::DeviceHealth>& health) {
  return std::any_of(shared.cards.begin(), shared.cards.end(), [&](const auto& card) {
    return health::health_of(health, {.gpu = card.gpu}).usable;
  });
}

std::vector<kubelet::ListedDevice> listed(const model::AdvertisedResource& resource,
                                          const resources::SharedGpus& shared,
                                          const std::vector<model::DeviceHealth>& health) {
  std::vector<kubelet::ListedDevice> devices;
  devices.reserve(resource.devices.size());
  if (resource.tokens) {
    const bool usable = any_usable(shared, health);
    for (const auto& device : resource.devices) devices.push_back(kubelet::listed(device, usable));
    return devices;
  }
  for (const auto& device : resource.devices)
    devices.push_back(kubelet::listed(device, health::health_of(health, device).usable));
  return devices;
}

}  // namespace

Plugins::Plugins(sys::Loop& loop, kubelet::RegistrarOptions options,
                 kubelet::PodResources* kubelet_view, const Log& log,
                 metrics::AgentCounters& counters, OnPreStart on_pre_start)
    : loop_(loop),
      log_(log),
      counters_(counters),
      on_pre_start_(std::move(on_pre_start)),
      registrar_(loop, std::move(options), kubelet_view,
                 [this](const kubelet::RegistrarEvent& event) { on_registrar(event); }) {}

Status Plugins::start() {
  return registrar_.start();
}

std::vector<kubelet::Plugin*> Plugins::plugins() const {
  std::vector<kubelet::Plugin*> all;
  for (const auto& [name, plugin] : plugins_) all.push_back(plugin.get());
  return all;
}

void Plugins::list(kubelet::Plugin& plugin, std::vector<kubelet::ListedDevice> devices) const {
  const auto before = plugin.devices();
  plugin.offer(std::move(devices));
  if (gke_log_ != nullptr && plugin.watched()) gke_log_->devices(before, plugin.devices());
}

kubelet::Plugin& Plugins::plugin_of(const std::string& resource) {
  auto& plugin = plugins_[resource];
  if (!plugin) plugin = std::make_unique<kubelet::Plugin>(loop_, resource, decisions_for(resource));
  return *plugin;
}

void Plugins::offer(std::shared_ptr<const CurrentOffer> offering,
                    const std::vector<model::DeviceHealth>& health) {
  offering_ = std::move(offering);
  for (const auto& resource : offering_->offer.resources) {
    const bool is_new = !plugins_.contains(resource.name);
    auto& plugin = plugin_of(resource.name);
    list(plugin, listed(resource, offering_->offer.shared, health));
    log_.info(kPluginsComponent, "offering devices",
              {{"resource", resource.name}, {"devices", resource.devices.size()}});
    if (is_new) registrar_.add(plugin);
  }
  for (const auto& [name, plugin] : plugins_) {
    if (offering_->preferences.contains(name)) continue;
    log_.info(kPluginsComponent, "no more devices", {{"resource", name}});
    list(*plugin, {});
  }
}

void Plugins::set_health(const std::vector<model::DeviceHealth>& health) {
  if (!offering_) return;
  for (const auto& resource : offering_->offer.resources)
    list(plugin_of(resource.name), listed(resource, offering_->offer.shared, health));
}

kubelet::PluginCallbacks Plugins::decisions_for(const std::string& resource) {
  return {
      .allocate = [this,
                   resource](const kubelet::DeviceIds& ids) { return allocate(resource, ids); },
      .prefer = [this, resource](
                    const kubelet::PreferredRequest& request) { return prefer(resource, request); },
      .pre_start =
          [this, resource](kubelet::PreStartRequest question) {
            on_pre_start_(resource, std::move(question));
          },
      .report = [this](const kubelet::CallReport& report) { count(report); }};
}

Result<model::ContainerAllocateResponse> Plugins::allocate(const std::string& resource,
                                                           const kubelet::DeviceIds& ids) {
  log_.info(kPluginsComponent, "Allocate", {{"resource", resource}, {"ids", ids}});
  return offering_->answers.answer(resource, ids);
}

Result<kubelet::DeviceIds> Plugins::prefer(const std::string& resource,
                                           const kubelet::PreferredRequest& request) {
  const auto found = offering_->preferences.find(resource);
  if (found == offering_->preferences.end())
    return Error(Errc::NotFound, fmt::format("{} is not offered any more", resource));
  return found->second.prefer(request.available, request.must_include, request.size);
}

void Plugins::count(const kubelet::CallReport& report) {
  const std::string resource(report.resource);
  const double seconds = std::chrono::duration<double>(report.took).count();
  const bool ok = report.outcome.ok();
  const auto outcome = ok ? metrics::Outcome::Ok : metrics::Outcome::Error;
  if (report.method == "Allocate") {
    ++counters_.allocations[{resource, outcome}];
    counters_.allocate_seconds[resource].add(seconds);
  } else if (report.method == "GetPreferredAllocation") {
    counters_.preferred_seconds[resource].add(seconds);
  } else if (report.method == "PreStartContainer") {
    ++counters_.pre_starts[{resource, outcome}];
    counters_.pre_start_seconds[resource].add(seconds);
  }
  if (!ok)
    log_.error(kPluginsComponent, "call failed",
               {{"method", report.method},
                {"resource", report.resource},
                {"err", report.outcome.message}});
}

void Plugins::on_registrar(const kubelet::RegistrarEvent& event) {
  using enum kubelet::RegistrarEvent::Kind;
  if (gke_log_ != nullptr)
    gke_log_->registrar(event, event.resource.empty() ? std::vector<kubelet::ListedDevice>{}
                                                      : plugin_of(event.resource).devices());
  const LogField resource{"resource", event.resource};
  const LogField endpoint{"endpoint", event.endpoint};
  const auto why = LogField::unless_empty("why", event.text);
  switch (event.what) {
    case Registered:
      ++counters_.registrations[{event.resource, metrics::Outcome::Ok}];
      return log_.info(kPluginsComponent, "registered with the kubelet", {resource, endpoint});
    case NotRegistered:
      ++counters_.registrations[{event.resource, metrics::Outcome::Error}];
      return log_.warning(kPluginsComponent, "not registered, trying again", {resource, why});
    case Disconnected:
      return log_.warning(kPluginsComponent, "kubelet disconnected, registering again", {resource});
    case OutOfSync:
      return log_.warning(kPluginsComponent, "kubelet has a different list", {resource, why});
    case SocketRemoved:
      return log_.warning(kPluginsComponent, "plugin socket was removed", {resource});
    case Waiting: return log_.info(kPluginsComponent, "waiting for the kubelet", {why});
    case Found: return log_.info(kPluginsComponent, "kubelet found", {{"socket", event.text}});
    case Serving: return log_.detail(1, kPluginsComponent, "serving", {resource, endpoint});
    case Watched:
      log_.detail(1, kPluginsComponent, "kubelet reads the list of devices", {resource});
      if (on_watched_) on_watched_();
      return;
  }
}

}  // namespace gantry::agent
