// SPDX-License-Identifier: Apache-2.0
#include "node/agent/owner_requests.hpp"

#include "gpu/ownership/owner_change.hpp"
#include "gpu/procfs/gpus.hpp"
#include "node/owner_lease/lease_socket.hpp"
#include "node/owner_lease/protocol.hpp"
#include "node/owner_lease/with_ownership.hpp"
#include "support/machine.hpp"
#include "support/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;
using model::AllocationMode;
using testing::ElementsAre;
using testing::HasSubstr;

// The agent's parts that owner requests need, with a real NVML process on a simulated machine.
class OwnerRequestsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
    gpu_ = procfs::read_gpus(host_)->front().information.gpu.pci;
    auto watcher = MachineWatcher::open(*loop_, host_, {}, {}, log_, counters_,
                                        {.machine =
                                             [this](model::Inventory) {
                                               ++machines_;
                                               if (requests_) requests_->machine_known();
                                             },
                                         .no_nvml = [](const model::Inventory&) {},
                                         .health = [] {},
                                         .notice = [](const health::HealthNotice&) {}});
    ASSERT_TRUE(watcher.ok()) << watcher.error().text();
    machine_ = *std::move(watcher);
    ASSERT_TRUE(turn_until([this] { return machines_ > 0; })) << "NVML does not answer";
    ASSERT_TRUE(ownership_.open());
    requests_ = std::make_unique<OwnerRequests>(
        *loop_, host_, log_, ownership_, *machine_,
        OwnerRequests::AgentCallbacks{.withdrawn = [this](const auto&) { return offers_ > 0; },
                                      .ask_kubelet =
                                          [this](auto then) {
                                            if (kubelet_is_slow_) {
                                              asked_ = std::move(then);
                                            } else {
                                              then(kubelet_);
                                            }
                                          },
                                      .pods = [this](const auto&) { return pods_; },
                                      .offer = [this] { ++offers_; }});
    ASSERT_TRUE(requests_->listen().ok());
  }

  bool turn_until(const std::function<bool()>& holds) {
    for (const auto until = Clock::now() + 20s; Clock::now() < until;) {
      if (holds()) return true;
      (void)loop_->turn(20ms);
    }
    return holds();
  }

  // Runs a command in a thread of its own while the agent's loop turns.
  Status command(
      const std::function<Status()>& act, std::chrono::milliseconds wait = 0ms,
      const std::function<void()>& meanwhile = [] {}) {
    Status result;
    std::atomic<bool> ended = false;
    std::jthread thread([&] {
      result = owner_lease::with_ownership(host_,
                                           {.gpu = gpu_,
                                            .to = ownership::Owner::Vm,
                                            .use = AllocationMode::Vm,
                                            .what = "gantry vfio bind"},
                                           {.wait = wait}, act);
      ended = true;
    });
    EXPECT_TRUE(turn_until([&] {
      meanwhile();
      return ended.load();
    }));
    return result;
  }

  test::Machine simulated_{"h200"};
  sys::Host host_ = simulated_.host();
  Log log_{LogForm::Klog, 0, [](std::string_view) {}};
  std::unique_ptr<sys::Loop> loop_ = *sys::Loop::make();
  metrics::AgentCounters counters_;
  OwnershipFilter ownership_{host_, log_};
  model::PciAddress gpu_;
  int machines_ = 0;
  std::atomic<int> offers_ = 0;
  Status kubelet_;
  bool kubelet_is_slow_ = false;
  std::function<void(const Status&)> asked_;  // the answer of a slow kubelet
  std::vector<std::string> pods_;
  std::unique_ptr<MachineWatcher> machine_;
  std::unique_ptr<OwnerRequests> requests_;
};

TEST_F(OwnerRequestsTest, TheAgentLetsGoOfTheGpuItselfAndComesBack) {
  ASSERT_TRUE(machine_->driver_answers());
  bool released = false;
  const auto status = command([&]() -> Status {
    std::promise<bool> answer;  // the watcher belongs to the loop's thread
    loop_->post([&] { answer.set_value(machine_->driver_answers()); });
    released = !answer.get_future().get();
    return {};
  });
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_TRUE(released) << "the NVML process had the device nodes open";
  EXPECT_EQ(ownership_.ledger()->state().find(gpu_)->owner, ownership::Owner::Vm);
  EXPECT_GE(offers_, 2) << "withdrawn and offered again";
  EXPECT_TRUE(turn_until([this] { return machine_->driver_answers(); }));
}

// An agent that started in the middle of another command's change, and then leases a GPU itself.
TEST_F(OwnerRequestsTest, MonitoringBeginsAgainWhenEverybodyAgrees) {
  machine_->release(MachineWatcher::kAtStart, "another GPU changes its owner");
  ASSERT_TRUE(command([] { return Status{}; }).ok());
  for (int i = 0; i < 20; ++i) {
    (void)loop_->turn(20ms);
    ASSERT_FALSE(machine_->driver_answers()) << "the other change is still under way";
  }
  machine_->resume(MachineWatcher::kAtStart);
  EXPECT_TRUE(turn_until([this] { return machine_->driver_answers(); }));
}

TEST_F(OwnerRequestsTest, NoLeaseIsGrantedWhileTheNextAgentStarts) {
  OwnershipFilter next(host_, log_);
  ASSERT_FALSE(next.open());
  const auto status = command([] { return Status{}; });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::Busy);
  EXPECT_THAT(status.error().text(), HasSubstr("an agent starts"));
  EXPECT_THAT(ownership_.ledger()->state().intents, testing::IsEmpty());
}

// Its minor number may be another one now, and the CDI specification is older than that.
TEST_F(OwnerRequestsTest, AGpuIsOfferedAgainOnlyWhenTheMachineWasDescribedAgain) {
  const int before = machines_;
  ASSERT_TRUE(command([] { return Status{}; }).ok());
  EXPECT_EQ(machines_, before);
  EXPECT_TRUE(ownership_.is_withheld(gpu_));
  ASSERT_TRUE(turn_until([&] { return machines_ > before; }));
  EXPECT_FALSE(ownership_.is_withheld(gpu_));
}

TEST_F(OwnerRequestsTest, APodIsNamedWhileMonitoringGoesOn) {
  pods_ = {"pod default/train"};
  const auto status = command([] { return Status{}; });
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(), HasSubstr("pod default/train"));
  EXPECT_TRUE(machine_->driver_answers()) << "it was not stopped";
}

TEST_F(OwnerRequestsTest, AProcessIsNamed) {
  simulated_.file("/proc/4711/comm", "python3\n");
  simulated_.link("/proc/4711/fd/5", "/dev/nvidia0");
  const auto status = command([] { return Status{}; });
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(), HasSubstr("process 4711 (python3) with /dev/nvidia0 open"));
  EXPECT_TRUE(turn_until([this] { return machine_->driver_answers(); }));
}

TEST_F(OwnerRequestsTest, ACommandThatDiesWhileTheKubeletIsAskedDoesNotStopMonitoring) {
  kubelet_is_slow_ = true;
  {
    const auto socket = owner_lease::connect(host_.outside(owner_lease::kOwnerSocket));
    ASSERT_TRUE(socket.ok());
    const owner_lease::OwnerRequest lease{
        .intent = ownership::intent_of({.gpu = gpu_, .what = "gantry gpu reset"})};
    ASSERT_TRUE(owner_lease::send(socket->get(), to_json(lease)).ok());
    ASSERT_TRUE(turn_until([this] { return asked_ != nullptr; }));
  }
  const int before = offers_;
  ASSERT_TRUE(turn_until([&] { return offers_ > before; })) << "the lease has ended";
  asked_(Status{});
  for (const auto until = Clock::now() + 500ms; Clock::now() < until;) {
    (void)loop_->turn(20ms);
    ASSERT_TRUE(machine_->driver_answers());
  }
}

TEST_F(OwnerRequestsTest, MonitoringGoesOnWhileACommandWaitsForAProcess) {
  simulated_.file("/proc/4711/comm", "python3\n");
  simulated_.link("/proc/4711/fd/5", "/dev/nvidia0");
  bool stopped = false;
  bool back = false;  // after the first look
  int stopped_again = 0;
  const auto status = command([] { return Status{}; }, 3s,
                              [&] {
                                const bool answers = machine_->driver_answers();
                                stopped = stopped || !answers;
                                back = back || (stopped && answers);
                                if (back && !answers) ++stopped_again;
                              });
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(), HasSubstr("process 4711"));
  EXPECT_TRUE(back);
  EXPECT_EQ(stopped_again, 0);
}

TEST_F(OwnerRequestsTest, AKubeletThatDoesNotAnswerIsNoLeave) {
  kubelet_ = Error(Errc::Timeout, "podresources: no answer");
  const auto status = command([] { return Status{}; });
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(), HasSubstr("asking the kubelet"));
}

}  // namespace
}  // namespace gantry::agent
