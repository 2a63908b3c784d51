// SPDX-License-Identifier: Apache-2.0
// Registration and streams; admission is in fake_kubelet_admission.cpp.
#include "support/fake_kubelet.hpp"

#include "node/kubelet/checkpoint.hpp"
#include "support/kubelet_messages.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace gantry::test {
namespace {

using grpc::CallStatus;
using grpc::Responder;
using grpc::StatusCode;

void remove_sockets(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    struct stat st {};
    if (::lstat(entry.path().c_str(), &st) == 0 && S_ISSOCK(st.st_mode))
      ::unlink(entry.path().c_str());
  }
}

bool is_extended_resource(const std::string& name) {
  const auto slash = name.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < name.size() &&
         name.find("kubernetes.io/") == std::string::npos && !name.starts_with("requests.");
}

}  // namespace

FakeKubelet::FakeKubelet(sys::Loop& loop, Options options)
    : loop_(loop), options_(std::move(options)) {}

FakeKubelet::~FakeKubelet() {
  kill();
}

Status FakeKubelet::start() {
  kill();
  std::filesystem::create_directories(options_.directory);
  remove_sockets(options_.directory);
  GANTRY_CHECK(read_checkpoint());
  life_ = std::make_shared<int>(0);
  server_ = std::make_unique<grpc::Server>(loop_);
  server_->on(
      std::string(kubelet::kRegister),
      [this](const std::string& request, const Responder& reply) { on_register(request, reply); });
  GANTRY_CHECK(server_->listen(options_.directory + "/kubelet.sock"));
  if (!options_.pod_resources.empty()) serve_pod_resources();
  return {};
}

void FakeKubelet::kill() {
  life_.reset();
  // A killed process leaves its socket files; our servers would remove theirs.
  const std::string socket = options_.directory + "/kubelet.sock";
  const std::string aside = socket + ".aside";
  if (server_) static_cast<void>(::rename(socket.c_str(), aside.c_str()));
  server_.reset();
  static_cast<void>(::rename(aside.c_str(), socket.c_str()));
  pod_resources_.reset();
  endpoints_.clear();
  current_.clear();
  devices_.clear();
  reusable_.clear();
}

void FakeKubelet::on_register(const std::string& request, const Responder& reply) {
  const auto decoded = kubelet::decode_register(request);
  if (!decoded.ok()) return reply.fail(grpc::to_call_status(decoded.error()));
  registrations_.push_back(*decoded);
  if (std::exchange(dies_in_register_, false)) return kill();
  if (register_outcome_) return reply.fail(*register_outcome_);
  if (decoded->version != kubelet::kVersion) {
    return reply.fail(
        {StatusCode::Unknown,
         fmt::format("requested API version \"{}\" is not supported", decoded->version)});
  }
  if (!is_extended_resource(decoded->resource)) {
    return reply.fail({StatusCode::Unknown,
                       fmt::format("the ResourceName \"{}\" is invalid", decoded->resource)});
  }
  auto endpoint = std::make_shared<Endpoint>();
  endpoint->resource = decoded->resource;
  endpoint->socket = fmt::format("{}/{}", options_.directory, decoded->endpoint);
  const auto same = [&](const auto& one) {
    return one->resource == endpoint->resource && one->socket == endpoint->socket && one->connected;
  };
  if (options_.streams == Streams::BySocket &&
      std::any_of(endpoints_.begin(), endpoints_.end(), same)) {
    return reply.fail({StatusCode::Unknown, "device plugin already connected"});
  }
  endpoint->client = std::make_unique<grpc::Client>(loop_, endpoint->socket);
  auto* client = endpoint->client.get();
  client->call(kubelet::kOptions, "", options_.call_deadline,
               [this, endpoint, reply, life = std::weak_ptr(life_)](const CallStatus& outcome,
                                                                    const std::string& answer) {
                 if (!life.expired()) on_options(endpoint, outcome, answer, reply);
               });
}

void FakeKubelet::on_options(const std::shared_ptr<Endpoint>& endpoint, const CallStatus& outcome,
                             const std::string& answer, const Responder& reply) {
  const auto options = outcome.ok() ? kubelet::decode_options(answer) : grpc::to_error(outcome);
  if (!options.ok()) {
    return reply.fail({StatusCode::Unknown, fmt::format("failed to get device plugin options: {}",
                                                        options.error().text())});
  }
  endpoint->options = *options;
  endpoint->connected = true;
  endpoints_.push_back(endpoint);
  current_[endpoint->resource] = endpoint;  // the connection of the old one stays open
  devices_[endpoint->resource];
  reply.answer("");
  watch(endpoint);
}

void FakeKubelet::watch(const std::shared_ptr<Endpoint>& endpoint) {
  endpoint->stream = endpoint->client->stream(
      kubelet::kListAndWatch, "",
      [this, resource = endpoint->resource](const std::string& message) {
        on_list(resource, message);
      },
      [this, weak = std::weak_ptr(endpoint)](const CallStatus&) {
        if (const auto ended = weak.lock()) on_stream_end(ended);
      });
}

void FakeKubelet::on_list(const std::string& resource, const std::string& message) {
  const auto listed = kubelet::decode_list(message);
  if (!listed.ok()) return;
  Devices devices;
  for (const auto& device : *listed) {
    devices.all[device.id] = device;
    if (device.healthy) devices.healthy.insert(device.id);
  }
  devices_[resource] = std::move(devices);
  write_checkpoint();
}

void FakeKubelet::on_stream_end(const std::shared_ptr<Endpoint>& endpoint) {
  if (options_.streams == Streams::ByResource) {
    // Kubelets up to 1.36 disconnect the current endpoint, even if it is a newer one.
    const auto found = current_.find(endpoint->resource);
    std::erase(endpoints_, endpoint);
    if (found != current_.end()) disconnect(found->second);
    return;
  }
  disconnect(endpoint);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the caller's may be an element of our lists
void FakeKubelet::disconnect(std::shared_ptr<Endpoint> endpoint) {
  endpoint->connected = false;
  endpoint->stream.cancel();
  std::erase(endpoints_, endpoint);
  const auto other = std::find_if(endpoints_.rbegin(), endpoints_.rend(), [&](const auto& one) {
    return one->resource == endpoint->resource && one->connected;
  });
  if (options_.streams == Streams::BySocket && other != endpoints_.rend()) {
    current_[endpoint->resource] = *other;
  } else {
    current_.erase(endpoint->resource);
    mark_unhealthy(endpoint->resource);
  }
  // The client may be on the stack.
  loop_.post([kept = std::shared_ptr<grpc::Client>(std::move(endpoint->client))] {});
}

void FakeKubelet::mark_unhealthy(const std::string& resource) {
  devices_[resource].healthy.clear();
}

void FakeKubelet::stop_endpoint(const std::string& resource) {
  mark_unhealthy(resource);
  if (const auto endpoint = endpoint_of(resource)) endpoint->stopped = true;
}

void FakeKubelet::drop_connections() {
  const auto all = endpoints_;
  for (const auto& endpoint : all) disconnect(endpoint);
}

std::shared_ptr<FakeKubelet::Endpoint> FakeKubelet::endpoint_of(const std::string& resource) const {
  const auto found = current_.find(resource);
  return found == current_.end() ? nullptr : found->second;
}

bool FakeKubelet::connected(const std::string& resource) const {
  return endpoint_of(resource) != nullptr;
}

std::size_t FakeKubelet::capacity(const std::string& resource) const {
  const auto found = devices_.find(resource);
  return found == devices_.end() ? 0 : found->second.all.size();
}

std::set<std::string> FakeKubelet::healthy(const std::string& resource) const {
  const auto found = devices_.find(resource);
  return found == devices_.end() ? Ids{} : found->second.healthy;
}

kubelet::Allocatable FakeKubelet::allocatable() const {
  kubelet::Allocatable all;
  for (const auto& [resource, devices] : devices_) {
    if (!devices.healthy.empty()) all[resource] = devices.healthy;
  }
  return all;
}

void FakeKubelet::serve_pod_resources() {
  ::unlink(options_.pod_resources.c_str());
  pod_resources_ = std::make_unique<grpc::Server>(loop_);
  const auto answer = [this](const Responder& reply, const std::string& bytes) {
    ++pod_resources_calls_;
    if (pod_resources_outcome_) return reply.fail(*pod_resources_outcome_);
    reply.answer(bytes);
  };
  pod_resources_->on(std::string(kubelet::kListPods),
                     [this, answer](const std::string&, const Responder& reply) {
                       answer(reply, kubelet::encode_pod_resources(holders()));
                     });
  pod_resources_->on(std::string(kubelet::kGetAllocatable),
                     [this, answer](const std::string&, const Responder& reply) {
                       answer(reply, kubelet::encode_allocatable(allocatable()));
                     });
  std::filesystem::create_directories(std::filesystem::path(options_.pod_resources).parent_path());
  static_cast<void>(pod_resources_->listen(options_.pod_resources).ok());
}

}  // namespace gantry::test
