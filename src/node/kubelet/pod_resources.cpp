// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/pod_resources.hpp"

#include "base/core/clock.hpp"
#include "net/grpc/client.hpp"
#include "net/grpc/protobuf.hpp"
#include "node/kubelet/decode_fields.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace gantry::kubelet {
namespace {

using model::DeviceAllocation;

constexpr std::size_t kAnswerLimit = std::size_t{16} << 20;
constexpr std::chrono::seconds kLeftAlone{1};  // after RESOURCE_EXHAUSTED

struct Devices {  // ContainerDevices: of one resource and one NUMA node
  std::string resource;
  std::vector<std::string> ids;
};

Result<Devices> decode_devices(std::string_view bytes) {
  Devices devices;
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    switch (field.number()) {
      case 1: return read(field, devices.resource);
      case 2: return read(field, devices.ids);
      default: return {};
    }
  }));
  return devices;
}

struct Container {
  std::string name;
  std::map<std::string, std::vector<std::string>> ids;  // by resource, of all NUMA nodes
};

Result<Container> decode_container(std::string_view bytes) {
  Container container;
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    if (field.number() == 1) return read(field, container.name);
    if (field.number() != 2) return {};
    GANTRY_TRY(const std::string_view inner, field.message());
    GANTRY_TRY(auto devices, decode_devices(inner));
    auto& ids = container.ids[devices.resource];
    ids.insert(ids.end(), devices.ids.begin(), devices.ids.end());
    return {};
  }));
  return container;
}

Result<std::vector<DeviceAllocation>> decode_pod(std::string_view bytes) {
  DeviceAllocation pod;
  std::vector<Container> containers;
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    switch (field.number()) {
      case 1: return read(field, pod.pod.name);
      case 2: return read(field, pod.pod.name_space);
      case 3: return read(field, decode_container, containers);
      default: return {};
    }
  }));
  std::vector<DeviceAllocation> holders;
  for (auto& container : containers) {
    for (auto& [resource, ids] : container.ids) {
      DeviceAllocation holder = pod;
      holder.container = container.name;
      holder.resource = resource;
      holder.ids = std::move(ids);
      std::sort(holder.ids.begin(), holder.ids.end());
      holder.ids.erase(std::unique(holder.ids.begin(), holder.ids.end()), holder.ids.end());
      holders.push_back(std::move(holder));
    }
  }
  return holders;
}

}  // namespace

Result<std::vector<DeviceAllocation>> decode_pod_resources(std::string_view bytes) {
  GANTRY_TRY(auto pods, decode_each(bytes, decode_pod));
  std::vector<DeviceAllocation> all;
  for (auto& pod : pods) std::move(pod.begin(), pod.end(), std::back_inserter(all));
  return all;
}

Result<Allocatable> decode_allocatable(std::string_view bytes) {
  GANTRY_TRY(const auto all, decode_each(bytes, decode_devices));
  Allocatable allocatable;
  for (const auto& devices : all) {
    allocatable[devices.resource].insert(devices.ids.begin(), devices.ids.end());
  }
  return allocatable;
}

struct PodResources::State {
  // The cached answer of one method, and the callers that wait for it.
  template <class T>
  struct Question {
    std::string_view method;
    Result<T> (*decode)(std::string_view);
    std::optional<T> kept;
    Clock::time_point kept_at;
    std::vector<std::function<void(const Result<T>&)>> waiting;
    bool asked = false;
    sys::Loop::Timer timer;

    void tell(const Result<T>& answer) {
      const auto who = std::exchange(waiting, {});
      for (const auto& one : who) one(answer);
    }
  };

  State(sys::Loop& its_loop, Options its_options)
      : loop(its_loop),
        options(std::move(its_options)),
        client(its_loop, options.path, {.message_limit = kAnswerLimit}) {}

  template <class T>
  void ask(Question<T>& question, std::function<void(const Result<T>&)> callback) {
    question.waiting.push_back(std::move(callback));
    if (question.asked) return;
    const auto now = Clock::now();
    const bool fresh = now - question.kept_at < options.keep || now < left_alone_until;
    question.asked = true;
    if (question.kept && fresh) {
      question.timer = loop.after({}, [&question] {
        question.asked = false;
        const Result<T> answer = *question.kept;
        question.tell(answer);
      });
      return;
    }
    client.call(question.method, "", options.deadline,
                [this, &question](const grpc::CallStatus& outcome, const std::string& reply) {
                  settle(question, outcome, reply);
                });
  }

  template <class T>
  void settle(Question<T>& question, const grpc::CallStatus& outcome, const std::string& reply) {
    question.asked = false;
    if (outcome.code == grpc::StatusCode::ResourceExhausted) {
      left_alone_until = Clock::now() + kLeftAlone;
      if (question.kept) {
        const Result<T> answer = *question.kept;
        return question.tell(answer);
      }
    }
    Result<T> answer = outcome.ok() ? question.decode(reply) : grpc::to_error(outcome);
    if (answer.ok()) {
      question.kept = *answer;
      question.kept_at = Clock::now();
    }
    question.tell(std::move(answer).in("reading the kubelet's podresources"));
  }

  void ask_now(OnHolders callback) {
    client.call(holders.method, "", options.deadline,
                [this, callback = std::move(callback)](const grpc::CallStatus& outcome,
                                                       const std::string& reply) {
                  auto answer = outcome.ok() ? holders.decode(reply) : grpc::to_error(outcome);
                  if (answer.ok()) {
                    holders.kept = *answer;
                    holders.kept_at = Clock::now();
                  }
                  callback(std::move(answer).in("reading the kubelet's podresources"));
                });
  }

  sys::Loop& loop;
  Options options;
  grpc::Client client;
  Clock::time_point left_alone_until;
  Question<std::vector<DeviceAllocation>> holders{kListPods, decode_pod_resources};
  Question<Allocatable> allocatable{kGetAllocatable, decode_allocatable};
};

PodResources::PodResources(sys::Loop& loop) : PodResources(loop, Options{}) {}

PodResources::PodResources(sys::Loop& loop, Options options)
    : state_(std::make_unique<State>(loop, std::move(options))) {}

PodResources::~PodResources() = default;

void PodResources::holders(OnHolders callback) {
  state_->ask(state_->holders, std::move(callback));
}

void PodResources::holders_now(OnHolders callback) {
  state_->ask_now(std::move(callback));
}

void PodResources::allocatable(OnAllocatable callback) {
  state_->ask(state_->allocatable, std::move(callback));
}

void PodResources::forget() {
  state_->holders.kept_at = {};
  state_->allocatable.kept_at = {};
}

}  // namespace gantry::kubelet
