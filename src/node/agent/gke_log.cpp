// SPDX-License-Identifier: Apache-2.0
#include "node/agent/gke_log.hpp"

#include <fmt/format.h>

namespace gantry::agent {
namespace {

// The source positions in that plugin's lines, from the version that people's runbooks quote.
constexpr std::string_view kStarted = "nvidia_gpu.go:67";
constexpr std::string_view kReading = "nvidia_gpu.go:74";
constexpr std::string_view kFailed = "nvidia_gpu.go:78";
constexpr std::string_view kFalling = "nvidia_gpu.go:79";
constexpr std::string_view kUsing = "nvidia_gpu.go:83";
constexpr std::string_view kMetrics = "nvidia_gpu.go:107";
constexpr std::string_view kServer = "metrics.go:84";
constexpr std::string_view kNvml = "metrics.go:90";
constexpr std::string_view kCount = "devices.go:105";
constexpr std::string_view kDevice = "devices.go:116";
constexpr std::string_view kApi = "manager.go:243";
constexpr std::string_view kServing = "manager.go:257";
constexpr std::string_view kServed = "manager.go:286";
constexpr std::string_view kBeta = "manager.go:290";
constexpr std::string_view kRegistered = "manager.go:298";
constexpr std::string_view kWatched = "beta_plugin.go:38";
constexpr std::string_view kMarked = "beta_plugin.go:45";
constexpr std::string_view kSend = "beta_plugin.go:133";
constexpr std::string_view kHealth = "health_checker.go";

std::string_view word(const kubelet::ListedDevice& device) {
  return device.healthy ? "Healthy" : "Unhealthy";
}

std::string_view source_line(std::string_view note) {
  if (note.starts_with("Reading GPU config")) return kReading;
  if (note.starts_with("Failed to parse")) return kFailed;
  if (note.starts_with("Falling back")) return kFalling;
  return kUsing;
}

}  // namespace

std::string go_text(const std::vector<kubelet::ListedDevice>& devices) {
  std::string text = "&ListAndWatchResponse{Devices:[]*Device{";
  for (const auto& device : devices) {
    text +=
        fmt::format("&Device{{ID:{},Health:{},Topology:{},}},", device.id, word(device),
                    device.numa_node
                        ? fmt::format("&TopologyInfo{{Nodes:[]*NUMANode{{&NUMANode{{ID:{},}},}},}}",
                                      *device.numa_node)
                        : "nil");
  }
  return text + "},}";
}

void GkeLog::started() const {
  log_.write(LogLevel::Info, kStarted, "device-plugin started");
}

void GkeLog::options(const std::vector<std::string>& notes) const {
  for (const auto& note : notes) log_.write(LogLevel::Info, source_line(note), note);
}

// "Foud" is the spelling in that plugin.
void GkeLog::metrics(const options::GkeOptions& gke, const model::Inventory& machine) const {
  log_.write(LogLevel::Info, kMetrics,
             fmt::format("Starting metrics server on port: {}, endpoint path: /metrics, "
                         "collection frequency: {}",
                         gke.metrics_port, gke.metrics_collection_ms));
  log_.write(LogLevel::Info, kServer, "Starting metrics server");
  log_.write(
      LogLevel::Info, kNvml,
      fmt::format("nvml initialized successfully. Driver version: {}", machine.driver.version));
  log_.write(LogLevel::Info, kCount, fmt::format("Foud {} GPU devices", machine.gpus.size()));
  for (const auto& gpu : machine.gpus) {
    if (gpu.minor)
      log_.write(LogLevel::Info, kDevice,
                 fmt::format("Found device nvidia{} for metrics collection", *gpu.minor));
  }
}

void GkeLog::health_checks(const std::vector<model::AdvertisedResource>& offered) const {
  log_.write(LogLevel::Info, kHealth, "Starting GPU Health Checker");
  for (const auto& resource : offered) {
    for (const auto& device : resource.devices)
      log_.write(LogLevel::Info, kHealth,
                 fmt::format("Healthchecker receives device {}", device.id));
  }
}

// That plugin first tries the kubelet's older interface, which no longer exists, and logs it.
void GkeLog::serving() const {
  log_.write(LogLevel::Info, kApi, "will use alpha API");
}

void GkeLog::registrar(const kubelet::RegistrarEvent& event,
                       const std::vector<kubelet::ListedDevice>& devices) const {
  using enum kubelet::RegistrarEvent::Kind;
  switch (event.what) {
    case Serving:
      log_.write(
          LogLevel::Info, kServing,
          fmt::format("starting device-plugin server at: {}/{}", directory_, event.endpoint));
      return log_.write(LogLevel::Info, kServed, "device-plugin server started serving");
    case Registered:
      log_.write(LogLevel::Info, kBeta, "falling back to v1beta1 API");
      return log_.write(LogLevel::Info, kRegistered, "device-plugin registered with the kubelet");
    case Watched:
      log_.write(LogLevel::Info, kWatched, "device-plugin: ListAndWatch start");
      return send(devices);
    case Waiting:
    case Found:
    case NotRegistered:
    case Disconnected:
    case OutOfSync:
    case SocketRemoved: return;
  }
}

void GkeLog::devices(const std::vector<kubelet::ListedDevice>& before,
                     const std::vector<kubelet::ListedDevice>& now) const {
  if (before == now) return;
  for (const auto& device : now) {
    for (const auto& old : before) {
      if (old.id == device.id && old.healthy != device.healthy)
        log_.write(LogLevel::Info, kMarked,
                   fmt::format("device-plugin: {} device marked as {}", device.id, word(device)));
    }
  }
  send(now);
}

void GkeLog::send(const std::vector<kubelet::ListedDevice>& devices) const {
  log_.write(LogLevel::Info, kSend, fmt::format("ListAndWatch: send devices {}", go_text(devices)));
}

void GkeLog::xid(const health::HealthNotice& notice, const std::string& device) const {
  const auto number = *notice.xid;
  if (!notice.critical)
    return log_.write(LogLevel::Info, kHealth,
                      fmt::format("Health checker is skipping Xid {} error", number));
  if (device.empty())
    return log_.write(
        LogLevel::Error, kHealth,
        fmt::format("XidCriticalError: Xid={}, All devices will go unhealthy.", number));
  log_.write(LogLevel::Error, kHealth,
             fmt::format("XidCriticalError: Xid={} on Device={}, uuid={}, the device will go "
                         "unhealthy.",
                         number, device, notice.gpu.text));
}

}  // namespace gantry::agent
