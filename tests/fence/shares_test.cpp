// SPDX-License-Identifier: Apache-2.0
// Whole shares: the share daemon as a process, the installed library, and programs that share the
// time of one simulated GPU.
#include "fence/machine_with_daemon.hpp"
#include "support/load_monitor.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

namespace gantry::fence::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using ::testing::Contains;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;

class Shares : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gantry::test::Machine::has_libraries()) GTEST_SKIP() << "no simulated libraries";
  }
  MachineWithDaemon machine_;
};

// The percentage of time that each had while all were busy.
template <std::size_t kCount>
std::array<double, kCount> parts(const std::array<SharedCounter, kCount>& counters,
                                 std::chrono::milliseconds window) {
  std::array<std::uint64_t, kCount> before{};
  for (std::size_t i = 0; i < kCount; ++i) before[i] = counters[i].value();
  const auto begin = Clock::now();
  std::this_thread::sleep_for(window);
  const auto elapsed = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  std::array<double, kCount> had{};
  for (std::size_t i = 0; i < kCount; ++i)
    had[i] = 100 * static_cast<double>(counters[i].value() - before[i]) / elapsed;
  return had;
}

TEST_F(Shares, ThreeBusySharesHaveTheirPartsOfTheTime) {
  const std::array<std::string, 3> names{"a", "b", "c"};
  const std::array<std::string, 3> percents{"10%", "30%", "60%"};
  std::array<SharedCounter, 3> counters;
  std::array<pid_t, 3> pids{};
  for (std::size_t i = 0; i < 3; ++i) {
    machine_.make({.name = names[i], .compute = percents[i], .excess = "work-conserving"});
    pids[i] = start_busy_process(machine_.fence(names[i]), 1000, counters[i]);
  }
  EXPECT_TRUE(ShareUnderTest::until([&] {
    return counters[0].value() > 0 && counters[1].value() > 0 && counters[2].value() > 0;
  }));
  // Other load on the machine may spoil one window, but not all of them.
  std::array<double, 3> had{};
  EXPECT_TRUE(ShareUnderTest::until([&] {
    had = parts(counters, 3s);
    const double all = had[0] + had[1] + had[2];
    const auto near = [&](std::size_t i, double percent) {
      return std::abs(100 * had[i] / all - percent) < 3;
    };
    return all > 80 && near(0, 10) && near(1, 30) && near(2, 60);
  })) << had[0]
      << " " << had[1] << " " << had[2];
  const auto states = machine_.client().list();
  for (const auto& state : *states)
    EXPECT_THAT(state.findings, Not(Contains(Field(&daemon::FindingState::kind, "past-fence"))));
  for (const auto pid : pids) end(pid);
}

TEST_F(Shares, AHardCapHoldsForOneAlone) {
  machine_.make({.name = "a", .compute = "30%"});
  std::array<SharedCounter, 1> counters;
  const auto pid = start_busy_process(machine_.fence("a"), 1000, counters[0]);
  EXPECT_TRUE(ShareUnderTest::until([&] { return counters[0].value() > 0; }));
  // On a busy machine the process may lack the processor to use its part: there only the cap
  // counts.
  double had = 0;
  double most = 0;
  bool reached = false;
  bool quiet = false;
  for (int attempt = 0; attempt < 5 && !reached; ++attempt) {
    gantry::test::LoadMonitor monitor;
    had = parts(counters, 3s)[0];
    quiet = monitor.was_quiet() || quiet;
    most = std::max(most, had);
    reached = std::abs(had - 30) < 3;
  }
  EXPECT_TRUE(reached || (!quiet && most < 33)) << had << ", at most " << most;
  end(pid);
}

TEST_F(Shares, TimeOfOneThatIsKilledIsTheOthers) {
  machine_.make({.name = "a", .compute = "50%", .excess = "work-conserving"});
  machine_.make({.name = "b", .compute = "50%", .excess = "work-conserving"});
  std::array<SharedCounter, 2> counters;
  const auto first = start_busy_process(machine_.fence("a"), 1000, counters[0]);
  const auto second = start_busy_process(machine_.fence("b"), 1000, counters[1]);
  EXPECT_TRUE(
      ShareUnderTest::until([&] { return counters[0].value() > 0 && counters[1].value() > 0; }));
  end(first);
  EXPECT_TRUE(ShareUnderTest::until([&] { return parts(counters, 1s)[1] > 80; }));
  end(second);
}

// What a process does within a time: the longest pause in its work, and the percentage of the GPU's
// time that it has in the second where it has the most.
struct Course {
  std::chrono::milliseconds longest_pause{0};
  double most = 0;
  double least = 100;

  static constexpr double kMaxCappedPercent = 54;  // percent, with a cap of 50
  bool is_capped() const { return longest_pause < 100ms && most < kMaxCappedPercent && least > 35; }
  std::string text() const {
    return fmt::format("{} to {} %, longest pause {} ms", least, most, longest_pause.count());
  }
};
Course watch(const SharedCounter& counter, std::chrono::seconds window) {
  Course course;
  const auto begin = Clock::now();
  auto changed = begin;
  auto before = counter.value();
  for (auto second = begin; second < begin + window; second += 1s) {
    const auto had = before;
    for (auto now = Clock::now(); now < second + 1s; now = Clock::now()) {
      if (counter.value() != before) {
        before = counter.value();
        changed = now;
      }
      course.longest_pause =
          std::max(course.longest_pause,
                   std::chrono::duration_cast<std::chrono::milliseconds>(now - changed));
      std::this_thread::sleep_for(1ms);
    }
    const auto percent = static_cast<double>(before - had) / 1e4;
    course.most = std::max(course.most, percent);
    course.least = std::min(course.least, percent);
  }
  return course;
}

// An attempt is repeated only if other programs had the processors: one stall on a quiet machine is
// a fault. If they had them in all attempts, a stall proves nothing, but the cap must have held.
class WithoutDaemon : public Shares {
 protected:
  void expect_cap_kept(const std::function<void()>& lose, const std::function<void()>& restore) {
    machine_.make({.name = "a", .compute = "50%"});
    SharedCounter counter;
    const auto pid = start_busy_process(machine_.fence("a"), 1000, counter);
    EXPECT_TRUE(ShareUnderTest::until([&] { return counter.value() > 500'000; }));
    Course without;
    Course after;
    bool kept = false;
    bool quiet = false;
    double most = 0;
    for (int attempt = 0; attempt < 5 && !kept && !quiet; ++attempt) {
      gantry::test::LoadMonitor monitor;
      lose();
      without = watch(counter, 3s);
      restore();
      after = watch(counter, 4s);
      quiet = monitor.was_quiet();
      kept = without.is_capped() && after.is_capped();
      most = std::max({most, without.most, after.most});
      EXPECT_TRUE(ShareUnderTest::until([&] {
        const auto state = machine_.client().show("a");
        return state.ok() && state->processes.size() == 1;
      })) << "it attaches again";
    }
    EXPECT_TRUE(kept || (!quiet && most < Course::kMaxCappedPercent))
        << "without a daemon " << without.text() << "; with the next one " << after.text()
        << (quiet ? "" : ", five times on a busy machine");
    end(pid);
  }
};

TEST_F(WithoutDaemon, ACapHoldsAfterTheDaemonWasKilled) {
  expect_cap_kept([&] { machine_.kill_daemon(); }, [&] { machine_.start_daemon(); });
}

TEST_F(WithoutDaemon, ACapHoldsWhileTheDaemonHangs) {
  expect_cap_kept([&] { machine_.signal_daemon(SIGSTOP); },
                  [&] { machine_.signal_daemon(SIGCONT); });
}

TEST_F(Shares, OtherProcessesOnTheGpuAreNamedAndLeftAlone) {
  machine_.make({.name = "a", .compute = "30%"});
  const pid_t other = ::fork();
  if (other == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const CudaLibrary cuda(machine_.driver());
    sim::cuda::ready(cuda);
    CUdeviceptr memory = 0;
    if (cuda.cuMemAlloc_v2(&memory, 64 * kMiB) != CUDA_SUCCESS) ::_exit(1);
    for (;;) ::pause();
  }
  const auto unmanaged = [&] { return machine_.client().show("a")->gpus[0].unmanaged; };
  EXPECT_TRUE(ShareUnderTest::until([&] {
    const auto seen = unmanaged();
    return seen.size() == 1 && seen[0].pid == static_cast<std::uint32_t>(other) &&
           seen[0].memory_used >= 64 * kMiB;
  }));
  EXPECT_TRUE(machine_.client().show("a")->findings.empty()) << "no offence of the share";
  EXPECT_EQ(::kill(other, 0), 0);
  EXPECT_TRUE(machine_.client().set("a", {.percent = 0}).ok());
  EXPECT_TRUE(unmanaged().empty()) << "no share is time-sliced any more";
  end(other);
}

// A process of the share that loads the driver's library directly and takes any amount.
pid_t hostile(const MachineWithDaemon& machine, const std::string& share, std::uint64_t bytes,
              sighandler_t when_asked_to_go = SIG_DFL) {
  int go[2];
  EXPECT_EQ(::pipe2(go, O_CLOEXEC), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGTERM, when_asked_to_go);
    char word = 0;
    if (::read(go[0], &word, 1) != 1) ::_exit(1);
    const CudaLibrary cuda(machine.driver());
    sim::cuda::ready(cuda);
    CUdeviceptr memory = 0;
    if (cuda.cuMemAlloc_v2(&memory, bytes) != CUDA_SUCCESS) ::_exit(2);
    for (;;) ::pause();
  }
  const auto adopted = machine.client().adopt(share, pid);
  EXPECT_TRUE(adopted.ok()) << adopted.error().text();
  EXPECT_EQ(::write(go[1], "g", 1), 1);
  ::close(go[0]);
  ::close(go[1]);
  return pid;
}

TEST_F(Shares, WhoGoesPastTheFenceIsSeen) {
  machine_.make({.name = "a", .memory = "2GiB"});
  const auto pid = hostile(machine_, "a", 8 * kGiB);
  auto asking = machine_.client();
  EXPECT_TRUE(ShareUnderTest::until([&] { return asking.show("a")->findings.size() >= 2; }));
  const auto state = asking.show("a");
  EXPECT_THAT(state->findings, Contains(Field(&daemon::FindingState::kind, "memory")));
  EXPECT_THAT(state->findings, Contains(Field(&daemon::FindingState::kind, "past-fence")));
  EXPECT_THAT(state->findings,
              Contains(Field(&daemon::FindingState::pid, static_cast<std::uint32_t>(pid))));
  EXPECT_GT(state->gpus[0].memory_used, 8 * kGiB);
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0) << "it is only reported";
  end(pid);
}

TEST_F(Shares, ByPolicyWhoGoesPastTheFenceIsStopped) {
  machine_.make({.name = "a", .memory = "2GiB", .on_violation = "stop"});
  const auto pid = hostile(machine_, "a", 8 * kGiB);
  int status = 0;
  EXPECT_TRUE(ShareUnderTest::until([&] { return ::waitpid(pid, &status, WNOHANG) == pid; }));
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST_F(Shares, WhoDoesNotGoWhenAskedIsKilled) {
  machine_.make({.name = "a", .memory = "2GiB", .on_violation = "stop"});
  const auto pid = hostile(machine_, "a", 8 * kGiB, SIG_IGN);
  int status = 0;
  EXPECT_TRUE(ShareUnderTest::until([&] { return ::waitpid(pid, &status, WNOHANG) == pid; }));
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

// Attaches correctly and then bypasses every hook: it calls the driver's functions by its path.
TEST_F(Shares, WhoLaunchesBehindTheFencesBackIsSeen) {
  machine_.make({.name = "a", .compute = "20%"});
  SharedCounter launched;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const CudaLibrary fence(machine_.fence("a"));
    const CUfunction function = sim::cuda::ready(fence, "spin", kSpinPtx);
    const CudaLibrary raw(machine_.driver());
    for (;;) {
      unsigned long long nanoseconds = 10'000'000;
      void* arguments[] = {&nanoseconds};
      if (raw.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) !=
          CUDA_SUCCESS)
        ::_exit(1);
      if (raw.cuCtxSynchronize() != CUDA_SUCCESS) ::_exit(2);
      launched.add(1);
    }
  }
  EXPECT_TRUE(ShareUnderTest::until([&] { return launched.value() > 0; }));
  auto asking = machine_.client();
  EXPECT_TRUE(ShareUnderTest::until([&] {
    const auto state = asking.show("a");
    return state.ok() && state->findings.size() >= 2;
  }));
  const auto state = asking.show("a");
  EXPECT_THAT(state->findings, Contains(Field(&daemon::FindingState::kind, "hidden-time")));
  EXPECT_THAT(state->findings, Contains(Field(&daemon::FindingState::kind, "over-cap")));
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0);
  end(pid);
}

TEST_F(Shares, WhoStaysWithinItsLimitsIsNoFinding) {
  machine_.make({.name = "a", .memory = "4GiB", .on_violation = "stop"});
  SharedCounter allocated;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const CudaLibrary cuda(machine_.fence("a"));
    sim::cuda::ready(cuda);
    CUdeviceptr memory = 0;
    if (cuda.cuMemAlloc_v2(&memory, 3 * kGiB) != CUDA_SUCCESS) ::_exit(1);
    if (cuda.cuMemAlloc_v2(&memory, 3 * kGiB) != CUDA_ERROR_OUT_OF_MEMORY) ::_exit(2);
    allocated.add(1);
    for (;;) ::pause();
  }
  EXPECT_TRUE(ShareUnderTest::until([&] { return allocated.value() == 1; }));
  auto asking = machine_.client();
  EXPECT_TRUE(
      ShareUnderTest::until([&] { return asking.show("a")->gpus[0].memory_used > 3 * kGiB; }));
  EXPECT_EQ(asking.show("a")->gpus[0].memory_held, 3 * kGiB);
  EXPECT_EQ(asking.show("a")->refused, 1U);
  std::this_thread::sleep_for(1500ms);  // longer than any grace period of the audit
  EXPECT_THAT(asking.show("a")->findings, IsEmpty());
  end(pid);
}

// What the host sees of a program of the share, from the start of CUDA on.
class Exec : public Shares {
 protected:
  void SetUp() override {
    Shares::SetUp();
    machine_.make({.name = "a", .memory = "4GiB"});
  }
  // Takes 1 GiB, waits until told to, then does `rest`.
  pid_t program(const std::function<void(const CudaLibrary& cuda)>& rest) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const CudaLibrary cuda(machine_.fence("a"));
    sim::cuda::ready(cuda);
    CUdeviceptr memory = 0;
    if (cuda.cuMemAlloc_v2(&memory, kGiB) != CUDA_SUCCESS) ::_exit(1);
    while (told_.value() == 0) ::usleep(1000);
    rest(cuda);
    ::_exit(3);
  }
  bool used_becomes(const std::function<bool(const daemon::GpuState&)>& so) {
    return ShareUnderTest::until([&] {
      const auto state = machine_.client().show("a");
      return state.ok() && so(state->gpus[0]);
    });
  }
  SharedCounter told_;
};

TEST_F(Exec, WhoBecomesAnotherProgramHoldsNothing) {
  const auto pid =
      program([](const CudaLibrary&) { ::execl("/bin/sleep", "sleep", "1000", nullptr); });
  EXPECT_TRUE(used_becomes([](const auto& gpu) { return gpu.memory_used > kGiB; }));
  EXPECT_TRUE(used_becomes([](const auto& gpu) { return gpu.memory_held == kGiB; }));
  told_.add(1);
  EXPECT_TRUE(used_becomes([](const auto& gpu) { return gpu.memory_held == 0; }));
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0) << "it lives";
  end(pid);
}

bool is_socket(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

TEST_F(Exec, WhoOnlyClosesDescriptorsHoldsWhatItHeld) {
  SharedCounter closed;
  const auto pid = program([&](const CudaLibrary&) {
    for (int fd = 3; fd < 2048; ++fd) {
      if (is_socket(fd)) ::close(fd);
    }
    closed.add(1);
    for (;;) ::pause();
  });
  EXPECT_TRUE(used_becomes([](const auto& gpu) { return gpu.memory_used > kGiB; }));
  told_.add(1);
  EXPECT_TRUE(ShareUnderTest::until([&] { return closed.value() == 1; }));
  std::this_thread::sleep_for(1500ms);  // several readings
  EXPECT_TRUE(used_becomes([](const auto& gpu) { return gpu.memory_held == kGiB; }));
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0);
  end(pid);
}

}  // namespace
}  // namespace gantry::fence::test
