// SPDX-License-Identifier: Apache-2.0
// For tests of the agent's side of the kubelet: a log that can be read, an offer from a machine and
// options, pre-start requests made by hand, and a kubelet with the agent's plugins.
#pragma once

#include "container/plan/machine_for_test.hpp"
#include "node/agent/current_offer.hpp"
#include "node/agent/plugins.hpp"
#include "node/resources/offer_for_test.hpp"
#include "support/plugin_fixture.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gantry::agent {

// NOLINTNEXTLINE(readability-identifier-naming): constant, though not constexpr
inline const std::string kMigResource = "nvidia.com/mig-1g.18gb";

// The lines of a log. Any thread may write them.
class LogLines {
 public:
  Log log() {
    return Log{LogForm::Klog, 0, [lines = lines_](std::string_view line) {
                 const std::lock_guard lock(lines->mutex);
                 lines->text += line;
               }};
  }
  std::string text() const {
    const std::lock_guard lock(lines_->mutex);
    return lines_->text;
  }

 private:
  struct Lines {
    std::mutex mutex;
    std::string text;
  };
  std::shared_ptr<Lines> lines_ = std::make_shared<Lines>();
};

// A pre-start request that no kubelet sent, and its answer.
class ManualRequest {
 public:
  explicit ManualRequest(kubelet::DeviceIds ids) : ids_(std::move(ids)) {}

  // To be called once. `on_answer` is called after the answer was stored.
  kubelet::PreStartRequest request(std::function<void()> on_answer = nullptr) {
    const auto held = std::make_shared<int>();
    held_ = held;
    return {ids_,
            [held, state = state_, on_answer = std::move(on_answer)](const Status& answer) {
              state->answer = answer;
              if (on_answer) on_answer();
            },
            [state = state_] {
              ++state->looks;
              return state->over;
            }};
  }
  const std::optional<Status>& answer() const { return state_->answer; }
  bool answered() const { return state_->answer.has_value(); }
  bool is_ready() const { return answered() && answer()->ok(); }
  // The error of the answer; an error that says so if the answer is not an error.
  Error error() const {
    if (answered() && !answer()->ok()) return answer()->error();
    return {Errc::Internal, answered() ? "the answer is: ready" : "there is no answer"};
  }
  int looks() const { return state_->looks; }   // how often it was asked whether the kubelet waits
  void stop_waiting() { state_->over = true; }  // the kubelet gave up
  bool dropped() const { return held_.expired(); }  // there is no copy of the request any more

 private:
  struct State {
    std::optional<Status> answer;
    bool over = false;
    int looks = 0;
  };
  kubelet::DeviceIds ids_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::weak_ptr<int> held_;
};

inline std::shared_ptr<const CurrentOffer> current_offer_of(const model::Inventory& machine,
                                                            const options::Options& options) {
  auto made = make_current_offer(machine, resources::offer_of(machine, options), options, {});
  EXPECT_TRUE(made.ok()) << made.error().text();
  return made.ok() ? *std::move(made) : nullptr;
}

// Two GPUs of 4 GiB that are offered in shares.
inline model::Inventory shared_machine_for_test() {
  auto machine = plan::machine_for_test();
  machine.gpus.resize(2);
  for (auto& gpu : machine.gpus) gpu.memory_bytes = std::uint64_t{4} << 30U;
  return machine;
}

inline options::Options shares_for_test() {
  options::Options options{.list_strategies = {options::ListStrategy::CdiCri}};
  options.shares = {.all = true, .unit = options::MemoryUnit::GiB, .slots = 4};
  return options;
}

// Two whole GPUs as nvidia.com/gpu, and two MIG instances.
inline options::Options mixed_mig_for_test() {
  return {.mig_strategy = options::MigStrategy::Mixed,
          .list_strategies = {options::ListStrategy::Direct}};
}

class KubeletFixture : public test::PluginFixture {
 protected:
  void begin(Plugins::OnPreStart on_pre_start) {
    ASSERT_TRUE(kubelet_.start().ok());
    plugins_.emplace(*loop_, kubelet::RegistrarOptions{.directory = tree_.path("dp")}, nullptr,
                     log_, counters_, std::move(on_pre_start));
    ASSERT_TRUE(plugins_->start().ok());
  }

  // Returns when the kubelet has as many devices of each resource as are offered.
  void offer(const model::Inventory& machine, const options::Options& options) {
    offering_ = current_offer_of(machine, options);
    ASSERT_TRUE(offering_);
    plugins_->offer(offering_, health_);
    ASSERT_TRUE(until([&] {
      const auto& all = offering_->offer.resources;
      return plugins_->all_registered() &&
             std::all_of(all.begin(), all.end(), [&](const model::AdvertisedResource& one) {
               return kubelet_.capacity(one.name) == one.devices.size();
             });
    }));
  }

  static test::FakeKubelet::Pod pod_with(const std::string& uid,
                                         const std::map<std::string, int>& limits) {
    return {.name = "p" + uid, .uid = uid, .containers = {{.name = "main", .limits = limits}}};
  }

  sys::Host host_ = tree_.host();
  test::FakeKubelet kubelet_{*loop_,
                             kubelet_options(tree_, test::FakeKubelet::Streams::ByResource)};
  LogLines lines_;
  Log log_ = lines_.log();
  metrics::AgentCounters counters_;
  std::vector<model::DeviceHealth> health_;
  std::shared_ptr<const CurrentOffer> offering_;
  std::optional<Plugins> plugins_;
};

}  // namespace gantry::agent
