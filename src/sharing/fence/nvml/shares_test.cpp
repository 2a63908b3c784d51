// SPDX-License-Identifier: Apache-2.0
// Two shares of one simulated GPU: what a process and nvidia-smi see inside each.
#include "sharing/fence/nvml/fence_under_test.hpp"
#include "sim/libcuda/cuda_under_test.hpp"
#include "support/machine.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <vector>

namespace gantry::fence::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// nvidia-smi rounds up.
std::uint64_t mebibytes(std::uint64_t bytes) {
  return (bytes + kMiB - 1) / kMiB;
}

// A process that holds memory on the first GPU until it is ended.
class Tenant {
 public:
  Tenant(const gantry::test::Machine& machine, std::uint64_t bytes) {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const sim::cuda::CudaInTree cuda(machine);
      CUcontext context = nullptr;
      CUdeviceptr memory = 0;
      const bool done = cuda.cuInit(0) == CUDA_SUCCESS &&
                        cuda.cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS &&
                        cuda.cuMemAlloc_v2(&memory, bytes) == CUDA_SUCCESS;
      const char word = done ? 'y' : 'n';
      if (::write(ready[1], &word, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char word = 'n';
    EXPECT_EQ(::read(ready[0], &word, 1), 1);
    EXPECT_EQ(word, 'y');
    ::close(ready[0]);
  }
  ~Tenant() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Tenant(const Tenant&) = delete;
  Tenant& operator=(const Tenant&) = delete;
  unsigned int pid() const { return static_cast<unsigned int>(pid_); }

 private:
  pid_t pid_ = 0;
};

struct ListedProcess {
  unsigned int pid;
  std::uint64_t bytes;
  bool operator==(const ListedProcess&) const = default;
};

std::vector<ListedProcess> processes(const LoadedNvml& nvml, nvmlDevice_t device) {
  unsigned int count = 32;
  std::vector<nvmlProcessInfo_t> infos(count);
  EXPECT_EQ(NVML(nvml, nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, infos.data()),
            NVML_SUCCESS);
  std::vector<ListedProcess> out;
  for (unsigned int i = 0; i < count; ++i) out.push_back({infos[i].pid, infos[i].usedGpuMemory});
  return out;
}

// One share of the machine's first GPU, with a daemon that knows NVML's data about its processes.
class TestShare {
 public:
  TestShare(const gantry::test::Machine& machine, std::uint64_t limit)
      : driver(real(machine)),
        nvml(host, driver),
        smi_(machine.path(marker(machine).binary_directory)) {
    EXPECT_EQ(NVML(nvml, nvmlInit_v2)(), NVML_SUCCESS);
    EXPECT_EQ(NVML(nvml, nvmlDeviceGetHandleByIndex_v2)(0, &device), NVML_SUCCESS);
    char uuid[96];
    EXPECT_EQ(NVML(nvml, nvmlDeviceGetUUID)(device, uuid, sizeof uuid), NVML_SUCCESS);
    put_uuid(uuid, host.limits().gpu[0].uuid);
    host.limits().gpu[0].memory_limit = limit;
  }
  ~TestShare() { NVML(nvml, nvmlShutdown)(); }
  TestShare(const TestShare&) = delete;
  TestShare& operator=(const TestShare&) = delete;

  // As the daemon does it: `held` is the ledger's value, and what NVML reports beyond it is
  // overhead.
  void admit(const Tenant& tenant, std::uint64_t held, std::uint64_t used) {
    const std::uint32_t slot = host.limits().slots_in_use;
    host.process(slot).host_pid = tenant.pid();
    host.process(slot).pid = tenant.pid();
    host.process(slot).used[0] = used;
    host.row(0, slot).held = held;
    host.limits().gpu[0].memory_overhead += used - held;
  }

  std::string smi(const std::string& arguments) const {
    std::filesystem::create_directory(host.path("lib"));
    std::error_code exists;
    std::filesystem::create_symlink(host.path("libgantry-fence-nvml.so"),
                                    host.path("lib/libnvidia-ml.so.1"), exists);
    const std::string line =
        fmt::format("LD_LIBRARY_PATH={} {}/nvidia-smi {} 2>&1", host.path("lib"), smi_, arguments);
    FILE* pipe = ::popen(line.c_str(), "re");
    std::string out;
    std::array<char, 4096> part{};
    while (::fgets(part.data(), part.size(), pipe) != nullptr) out += part.data();
    EXPECT_EQ(::pclose(pipe), 0) << out;
    return out;
  }

  Host host;
  const std::string driver;
  const FencedNvml nvml;
  nvmlDevice_t device = nullptr;

 private:
  static sim::TreeMarker marker(const gantry::test::Machine& machine) {
    return *sim::read_marker(machine.root());
  }
  static std::string real(const gantry::test::Machine& machine) {
    return machine.path(marker(machine).nvml_library);
  }
  std::string smi_;
};

class FenceNvmlShares : public ::testing::Test {
 protected:
  FenceNvmlShares() {
    const LoadedNvml driver(one_.driver);
    const std::vector<ListedProcess> all = processes(driver, one_.device);
    EXPECT_EQ(all.size(), 3U);
    for (const ListedProcess& each : all) {
      if (each.pid == first_.pid()) one_.admit(first_, kGiB, used_[0] = each.bytes);
      if (each.pid == second_.pid()) one_.admit(second_, 2 * kGiB, used_[1] = each.bytes);
      if (each.pid == third_.pid()) other_.admit(third_, 3 * kGiB, used_[2] = each.bytes);
    }
    one_.host.start();
    other_.host.start();
  }

  gantry::test::Machine machine_{"h200x8"};
  Tenant first_{machine_, kGiB};
  Tenant second_{machine_, 2 * kGiB};
  Tenant third_{machine_, 3 * kGiB};
  TestShare one_{machine_, 20 * kGiB};
  TestShare other_{machine_, 10 * kGiB};
  std::array<std::uint64_t, 3> used_{};
};

TEST_F(FenceNvmlShares, EachSeesItsOwnProcessesAndTheirMemory) {
  EXPECT_GT(used_[0], kGiB) << "the context comes on top";
  EXPECT_THAT(processes(one_.nvml, one_.device),
              UnorderedElementsAre(ListedProcess{first_.pid(), used_[0]},
                                   ListedProcess{second_.pid(), used_[1]}));
  EXPECT_THAT(processes(other_.nvml, other_.device),
              ElementsAre(ListedProcess{third_.pid(), used_[2]}));
}

TEST_F(FenceNvmlShares, TheProcessesAddUpToWhatTheShareUses) {
  nvmlMemory_v2_t memory{};
  memory.version = nvmlMemory_v2;
  ASSERT_EQ(NVML(one_.nvml, nvmlDeviceGetMemoryInfo_v2)(one_.device, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.used, used_[0] + used_[1]);
  EXPECT_EQ(memory.total, 20 * kGiB);
  EXPECT_EQ(memory.free, memory.total - memory.used);
}

TEST_F(FenceNvmlShares, TheirLoadIsTheirOwn) {
  unsigned int count = 16;
  std::vector<nvmlProcessUtilizationSample_t> samples(count);
  ASSERT_EQ(
      NVML(other_.nvml, nvmlDeviceGetProcessUtilization)(other_.device, samples.data(), &count, 0),
      NVML_SUCCESS);
  ASSERT_EQ(count, 1U);
  EXPECT_EQ(samples[0].pid, third_.pid());
}

TEST_F(FenceNvmlShares, NvidiaSmiShowsTheShare) {
  const std::string table = one_.smi("-i 0");
  const auto row = [](const Tenant& tenant) { return fmt::format("  {}      C  ", tenant.pid()); };
  EXPECT_THAT(table, HasSubstr(fmt::format("{}MiB /  20480MiB", mebibytes(used_[0] + used_[1]))));
  EXPECT_THAT(table, AllOf(HasSubstr(row(first_)), HasSubstr(row(second_))));
  EXPECT_THAT(table, Not(HasSubstr(row(third_))));
  EXPECT_EQ(other_.smi("-i 0 --query-compute-apps=pid,used_memory --format=csv,noheader"),
            fmt::format("{}, {} MiB\n", third_.pid(), mebibytes(used_[2])));
  EXPECT_EQ(other_.smi("-i 0 --query-gpu=memory.total,memory.reserved --format=csv,noheader"),
            "10240 MiB, 0 MiB\n");
  EXPECT_THAT(other_.smi("-i 1"), HasSubstr("143771MiB")) << "not in the share";
}

}  // namespace
}  // namespace gantry::fence::test
