// SPDX-License-Identifier: Apache-2.0
// NvmlChild with a real child process on simulated machines that change, hang, crash and vanish.
#include "gpu/nvml_child/nvml_child.hpp"

#include "gpu/probe/snapshot.hpp"
#include "sim/machine/inject.hpp"
#include "support/machine.hpp"
#include "support/paths.hpp"
#include "support/tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

namespace gantry::nvml_child {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

NvmlChildOptions quick() {
  NvmlChildOptions options;
  options.start_deadline = 20s;
  options.answer_deadline = 10s;
  options.poll_interval = 20ms;
  options.initial_backoff = 20ms;
  options.max_backoff = 80ms;
  options.event_wait = 200ms;
  return options;
}

NvmlChildOptions misbehaving(const std::string& how) {
  auto options = quick();
  options.program = {test::built("test-programs/nvml_child_program"), how};
  if (how == "silent") options.start_deadline = 300ms;  // the others are detected by their messages
  return options;
}

// Runs the NvmlChild like an event loop and keeps all its messages.
class Watcher {
 public:
  Watcher(const sys::Host& host, NvmlChildOptions options)
      : sensor_(*NvmlChild::start(host, std::move(options))) {}

  NvmlChild& sensor() { return sensor_; }

  // The next message of this type that `wanted` accepts; nullptr after 20 s without one.
  template <class T>
  std::optional<T> next(const std::function<bool(const T&)>& wanted = [](const T&) {
    return true;
  }) {
    const auto until = Clock::now() + 20s;
    for (;;) {
      while (!queue_.empty()) {
        Message message = std::move(queue_.front());
        queue_.erase(queue_.begin());
        if (const auto* found = std::get_if<T>(&message); found != nullptr && wanted(*found))
          return *found;
      }
      if (Clock::now() > until) return std::nullopt;
      turn(100ms);
    }
  }
  std::optional<StateMessage> state(ChildState wanted) {
    return next<StateMessage>([=](const StateMessage& m) { return m.state == wanted; });
  }
  model::Readings readings(ReadingDepth depth) {
    sensor_.request_readings(depth);
    const auto answer = next<ReadingsMessage>();
    return answer ? answer->readings : model::Readings{};
  }
  bool sees_the_end_of(int pid) {
    const auto until = Clock::now() + 20s;
    while (::kill(pid, 0) == 0 && Clock::now() < until) turn(10ms);
    return ::kill(pid, 0) != 0;
  }
  void turn(std::chrono::milliseconds timeout) {
    pollfd wait{sensor_.fd(), POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(timeout.count()));
    for (auto& message : sensor_.on_readable()) queue_.push_back(std::move(message));
  }

 private:
  NvmlChild sensor_;
  std::vector<Message> queue_;
};

class OnMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
  }
  test::Machine machine_{"h200x8"};
  sys::Host host_ = machine_.host();
};

TEST_F(OnMachine, ItsFirstWordIsTheViewThatGivesTheInventory) {
  Watcher watcher(host_, quick());
  const auto view = watcher.next<ViewMessage>();
  ASSERT_TRUE(view);
  EXPECT_EQ(view->nvml.inventory.driver.nvml_error, "");
  const auto whole = probe::complete_inventory(host_, view->nvml);
  ASSERT_TRUE(whole.ok());
  const auto direct = probe::snapshot(host_);
  EXPECT_EQ(whole->generation, direct->generation);
  EXPECT_EQ(whole->links, direct->links);
  EXPECT_EQ(whole->files, direct->files);
  EXPECT_EQ(whole->gpus[3].uuid, direct->gpus[3].uuid);
  EXPECT_TRUE(watcher.state(ChildState::Running));
}

TEST_F(OnMachine, ReadingsHaveEveryGpuAndWhatItSays) {
  Watcher watcher(host_, quick());
  const auto readings = watcher.readings(ReadingDepth::Full);
  ASSERT_THAT(readings.gpus, SizeIs(8));
  for (const auto& gpu : readings.gpus) {
    EXPECT_EQ(gpu.lost, "");
    EXPECT_EQ(gpu.recovery_action, model::RecoveryAction::None);
    EXPECT_TRUE(gpu.temperature_celsius && gpu.power_milliwatts && gpu.sm_clock_mhz);
    EXPECT_TRUE(gpu.memory_used_bytes && gpu.utilization_percent && gpu.energy_millijoules);
    EXPECT_TRUE(gpu.duty_cycle_percent && gpu.remapped_corrected && gpu.nvlink_bandwidth_total);
    EXPECT_FALSE(gpu.vgpu_license);
  }
}

TEST_F(OnMachine, VitalReadingsLeaveOutTheRest) {
  Watcher watcher(host_, quick());
  const auto readings = watcher.readings(ReadingDepth::Vital);
  ASSERT_THAT(readings.gpus, SizeIs(8));
  EXPECT_TRUE(readings.gpus[0].temperature_celsius && readings.gpus[0].recovery_action);
  EXPECT_FALSE(readings.gpus[0].power_milliwatts);
}

TEST_F(OnMachine, AnAnswerSaysHowDeepItIs) {
  Watcher watcher(host_, quick());
  for (const auto depth :
       {ReadingDepth::Vital, ReadingDepth::Memory, ReadingDepth::Processes, ReadingDepth::Full}) {
    watcher.sensor().request_readings(depth);
    const auto answer = watcher.next<ReadingsMessage>();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->depth, depth);
  }
}

TEST_F(OnMachine, AnXidArrivesWithItsGpuAndFreshReadings) {
  Watcher watcher(host_, quick());
  const auto before = watcher.readings(ReadingDepth::Full);  // now it listens
  watcher.turn(300ms);
  ASSERT_TRUE(sim::inject_xid(machine_.root(), 3, 48).ok());
  const auto event = watcher.next<EventMessage>();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->event.kind, model::GpuEventKind::Xid);
  EXPECT_EQ(event->event.data, 48U);
  EXPECT_EQ(event->event.gpu, before.gpus[3].uuid);
  const auto after = watcher.next<ReadingsMessage>();
  ASSERT_TRUE(after);
  EXPECT_NE(after->readings.gpus[3].recovery_action, model::RecoveryAction::None);
  EXPECT_EQ(after->readings.gpus[2].recovery_action, model::RecoveryAction::None);
}

TEST_F(OnMachine, ALostGpuKeepsItsNameAndTheOthersGoOn) {
  Watcher watcher(host_, quick());
  const auto before = watcher.readings(ReadingDepth::Full);
  ASSERT_TRUE(sim::inject_lost(machine_.root(), 2).ok());
  watcher.turn(300ms);
  const auto after = watcher.readings(ReadingDepth::Full);
  ASSERT_THAT(after.gpus, SizeIs(8));
  EXPECT_EQ(after.gpus[2].uuid, before.gpus[2].uuid);
  EXPECT_THAT(after.gpus[2].lost, HasSubstr("GPU_IS_LOST"));
  EXPECT_EQ(after.gpus[5].lost, "");
}

TEST_F(OnMachine, AMigLayoutComesAsANewView) {
  Watcher watcher(host_, quick());
  ASSERT_TRUE(watcher.state(ChildState::Running));
  watcher.turn(300ms);
  ASSERT_TRUE(
      sim::inject_mig(machine_.root(), 1,
                      std::vector<sim::MigRequest>{{.profile = "1g.18gb"}, {.profile = "3g.71gb"}})
          .ok());
  const auto view = watcher.next<ViewMessage>(
      [](const ViewMessage& m) { return m.nvml.inventory.gpus.at(1).mig.instances.size() == 2; });
  ASSERT_TRUE(view);
  for (const auto& mig : view->nvml.inventory.gpus[1].mig.instances)
    EXPECT_EQ(mig.engines.copy, mig.profile == "1g.18gb" ? 1 : 3) << mig.profile;
  const auto readings = watcher.readings(ReadingDepth::Full);
  ASSERT_THAT(readings.gpus.at(1).instances, SizeIs(2));
  EXPECT_TRUE(readings.gpus[1].instances[0].memory_total_bytes);
}

TEST_F(OnMachine, AHangingDriverCostsTheDeadlineAndIsTriedAgain) {
  auto options = quick();
  options.answer_deadline = 300ms;
  Watcher watcher(host_, options);
  ASSERT_TRUE(watcher.state(ChildState::Running));
  const auto first = watcher.sensor().child_pid();
  ASSERT_TRUE(sim::inject_fault(machine_.root(),
                                {.function = "nvmlDeviceGetTemperature", .delay_ms = 60'000})
                  .ok());
  watcher.sensor().request_readings(ReadingDepth::Vital);
  const auto failed = watcher.state(ChildState::BackingOff);
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->why, AllOf(HasSubstr("did not answer within 300 ms"), HasSubstr("dmesg")));
  ASSERT_TRUE(sim::clear(machine_.root(), sim::ClearScope::Faults, std::nullopt).ok());
  ASSERT_TRUE(watcher.state(ChildState::Running));
  EXPECT_NE(watcher.sensor().child_pid(), first);
  EXPECT_TRUE(watcher.next<ReadingsMessage>()) << "the open question is asked again";
}

TEST_F(OnMachine, HangingAtTheStartIsTheSame) {
  ASSERT_TRUE(
      sim::inject_fault(machine_.root(), {.function = "nvmlInit_v2", .delay_ms = 60'000}).ok());
  auto options = quick();
  options.start_deadline = 500ms;
  Watcher watcher(host_, options);
  const auto failed = watcher.state(ChildState::BackingOff);
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->why, HasSubstr("did not answer within 500 ms"));
}

TEST_F(OnMachine, ACrashIsNamedAndTheNextChildWorks) {
  Watcher watcher(host_, quick());
  ASSERT_TRUE(watcher.state(ChildState::Running));
  ::kill(watcher.sensor().child_pid(), SIGKILL);
  const auto failed = watcher.state(ChildState::BackingOff);
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->why, HasSubstr("Killed"));
  EXPECT_TRUE(watcher.state(ChildState::Running));
  EXPECT_THAT(watcher.readings(ReadingDepth::Vital).gpus, SizeIs(8));
}

TEST_F(OnMachine, NvmlThatDoesNotStartIsSaidInTheViewAndBacksOff) {
  ASSERT_TRUE(sim::inject_fault(machine_.root(), {.function = "nvmlInit_v2", .result = 999}).ok());
  Watcher watcher(host_, quick());
  const auto view = watcher.next<ViewMessage>();
  ASSERT_TRUE(view);
  EXPECT_THAT(view->nvml.inventory.driver.nvml_error, HasSubstr("NVML_ERROR_UNKNOWN"));
  EXPECT_EQ(view->nvml.failure, NVML_ERROR_UNKNOWN);
  const auto whole = probe::complete_inventory(host_, view->nvml);
  EXPECT_THAT(whole->gpus, SizeIs(8)) << "the kernel still knows them";
  const auto again = watcher.next<StateMessage>([](const auto& m) { return m.failures >= 3; });
  EXPECT_TRUE(again);
  ASSERT_TRUE(sim::clear(machine_.root(), sim::ClearScope::Faults, std::nullopt).ok());
  EXPECT_TRUE(watcher.state(ChildState::Running));
}

TEST_F(OnMachine, AnUnloadedDriverIsWaitedForAndComesBack) {
  Watcher watcher(host_, quick());
  ASSERT_TRUE(watcher.state(ChildState::Running));
  const auto pid = watcher.sensor().child_pid();
  ASSERT_TRUE(sim::inject_unload(machine_.root()).ok());
  const auto gone = watcher.state(ChildState::NoDriver);
  ASSERT_TRUE(gone);
  EXPECT_NE(gone->why, "");
  EXPECT_EQ(watcher.sensor().child_pid(), -1);
  EXPECT_TRUE(watcher.sees_the_end_of(pid)) << "it lets go of the driver";
  ASSERT_TRUE(sim::inject_load(machine_.root()).ok());
  EXPECT_TRUE(watcher.state(ChildState::Running));
}

TEST_F(OnMachine, ReleaseLetsGoAndResumeComesBack) {
  Watcher watcher(host_, quick());
  ASSERT_TRUE(watcher.state(ChildState::Running));
  const auto pid = watcher.sensor().child_pid();
  watcher.sensor().release("a GPU is to be reset");
  EXPECT_TRUE(watcher.state(ChildState::Released));
  EXPECT_TRUE(watcher.sees_the_end_of(pid));
  EXPECT_EQ(watcher.sensor().child_pid(), -1);
  watcher.sensor().resume();
  EXPECT_TRUE(watcher.state(ChildState::Running));
}

TEST_F(OnMachine, MayBeginReleased) {
  auto options = quick();
  options.released = "a command changes the owner of a GPU";
  Watcher watcher(host_, options);
  EXPECT_TRUE(watcher.state(ChildState::Released));
  watcher.turn(300ms);
  EXPECT_EQ(watcher.sensor().child_pid(), -1);
  watcher.sensor().resume();
  EXPECT_TRUE(watcher.state(ChildState::Running));
}

// Any call may fail: the answer has all GPUs and the child keeps running.
TEST_F(OnMachine, EveryNthCallFailing) {
  Watcher watcher(host_, quick());
  ASSERT_TRUE(watcher.state(ChildState::Running));
  for (const std::uint32_t every : {2U, 3U, 7U, 23U}) {
    ASSERT_TRUE(
        sim::inject_fault(machine_.root(), {.function = "*", .result = 999, .every = every}).ok());
    for (int i = 0; i < 3; ++i) {
      watcher.sensor().request_readings(ReadingDepth::Full);
      watcher.turn(200ms);
    }
    ASSERT_TRUE(sim::clear(machine_.root(), sim::ClearScope::Faults, std::nullopt).ok());
    const auto whole = [](const ReadingsMessage& m) { return m.readings.gpus.size() == 8; };
    watcher.sensor().request_readings(ReadingDepth::Full);
    EXPECT_TRUE(watcher.next<ReadingsMessage>(whole)) << every;
  }
}

TEST_F(OnMachine, ItsDescriptorStaysTheSame) {
  Watcher watcher(host_, quick());
  const int fd = watcher.sensor().fd();
  ASSERT_TRUE(watcher.state(ChildState::Running));
  ::kill(watcher.sensor().child_pid(), SIGKILL);
  ASSERT_TRUE(watcher.state(ChildState::BackingOff));
  ASSERT_TRUE(watcher.state(ChildState::Running));
  EXPECT_EQ(watcher.sensor().fd(), fd);
}

TEST(NvmlChild, WithoutADriverItWaitsAndStartsNothing) {
  test::Tree tree;
  tree.directory("proc").directory("sys");
  const auto host = tree.host();
  Watcher watcher(host, quick());
  const auto state = watcher.state(ChildState::NoDriver);
  ASSERT_TRUE(state);
  EXPECT_NE(state->why, "");
  for (int i = 0; i < 5; ++i) watcher.turn(30ms);
  EXPECT_EQ(watcher.sensor().child_pid(), -1);
}

class BadChild : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BadChild, IsEndedAndNamed) {
  test::Tree tree;
  tree.file("proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module  580.1  x\n")
      .directory("sys/module/nvidia")
      .directory("proc/driver/nvidia/gpus");
  const auto host = tree.host();
  Watcher watcher(host, misbehaving(GetParam().first));
  const auto failed = watcher.state(ChildState::BackingOff);
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->why, HasSubstr(GetParam().second));
}

INSTANTIATE_TEST_SUITE_P(Ways, BadChild,
                         ::testing::Values(std::pair{"garbage", "sent an invalid answer"},
                                           std::pair{"endless", "sent an answer without a request"},
                                           std::pair{"silent", "did not answer within 300 ms"},
                                           std::pair{"babble", "sent an invalid answer"}));

TEST(NvmlChild, AProgramThatIsNotThereBacksOff) {
  test::Tree tree;
  tree.file("proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module  580.1  x\n")
      .directory("sys/module/nvidia");
  const auto host = tree.host();
  auto options = quick();
  options.program = {tree.path("/nothing"), "x"};
  Watcher watcher(host, options);
  EXPECT_TRUE(watcher.next<StateMessage>([](const auto& m) { return m.failures >= 2; }));
}

}  // namespace
}  // namespace gantry::nvml_child
