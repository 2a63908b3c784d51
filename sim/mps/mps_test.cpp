// SPDX-License-Identifier: Apache-2.0
// The MPS programs of a simulated machine, and its libcuda as their client.
#include "base/sys/child.hpp"
#include "sim/libcuda/cuda_under_test.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace gantry::sim::cuda {
namespace {

using testing::HasSubstr;

constexpr std::size_t kGiB = 1ULL << 30U;

class Mps : public testing::Test {
 protected:
  ~Mps() override {
    // The library stays loaded, and with it the client's connection.
    if (const auto server = first_server(); !server.empty())
      control(fmt::format("shutdown_server {} -f\n", server));
    control("quit\n");
  }

  std::string program(const std::vector<std::string>& arguments, const std::string& input) const {
    std::vector<std::string> words{machine_.path("/usr/local/nvidia/bin/nvidia-cuda-mps-control")};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const auto done = sys::run_command(
        words,
        {.deadline = std::chrono::seconds(30),
         .input = input,
         .environment = {"LD_LIBRARY_PATH=" + machine_.path("/usr/local/nvidia/lib64"),
                         "CUDA_MPS_PIPE_DIRECTORY=" + pipes_, "CUDA_MPS_LOG_DIRECTORY=" + logs_}});
    EXPECT_TRUE(done.ok()) << done.error().text();
    return done.ok() ? done->output : "";
  }
  std::string control(const std::string& input) const { return program({}, input); }
  void start() const { EXPECT_EQ(program({"-d"}, ""), ""); }
  std::string first_server() const {
    const auto list = control("get_server_list\n");
    return list.substr(0, list.find_first_not_of("0123456789"));
  }

  static int attribute(const Api& cuda, CUdevice_attribute which) {
    int value = -1;
    EXPECT_EQ(cuda.cuDeviceGetAttribute(&value, which, 0), CUDA_SUCCESS);
    return value;
  }
  static CUresult allocate(const Api& cuda, std::size_t bytes) {
    CUdeviceptr memory = 0;
    return cuda.cuMemAlloc_v2(&memory, bytes);
  }
  static CUresult create_context(const Api& cuda) {
    CUcontext context = nullptr;
    return cuda.cuCtxCreate_v2(&context, 0, 0);
  }

  test::Machine machine_{"h200"};
  std::string pipes_ = machine_.path("/pipes");
  std::string logs_ = machine_.path("/logs");
  ScopedEnvironment directory_{"CUDA_MPS_PIPE_DIRECTORY", pipes_.c_str()};
};

TEST_F(Mps, ADaemonAnswersUntilItQuits) {
  EXPECT_EQ(control("get_server_list\n"), "Cannot find MPS control daemon process\n");
  start();
  EXPECT_EQ(program({"-d"}, ""), "An instance of this daemon is already running\n");
  EXPECT_EQ(control("get_default_active_thread_percentage\nget_server_list\n"), "100.0\n");
  EXPECT_EQ(program({"set_default_active_thread_percentage", "25"}, ""), "25.0\n");
  EXPECT_TRUE(std::filesystem::exists(pipes_ + "/nvidia-cuda-mps-control.pid"));
  control("quit\n");
  EXPECT_EQ(control("get_server_list\n"), "Cannot find MPS control daemon process\n");
  EXPECT_FALSE(std::filesystem::exists(pipes_ + "/nvidia-cuda-mps-control.pid"));
}

TEST_F(Mps, AClientHasTheLimitsOfItsServer) {
  start();
  control("set_default_device_pinned_mem_limit 0 8G\nset_default_active_thread_percentage 30\n");
  const CudaInTree cuda(machine_);
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(attribute(cuda, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 38);
  EXPECT_EQ(attribute(cuda, CU_DEVICE_ATTRIBUTE_MPS_ENABLED), 1);
  ASSERT_EQ(create_context(cuda), CUDA_SUCCESS);
  EXPECT_EQ(allocate(cuda, 7 * kGiB), CUDA_SUCCESS);
  EXPECT_EQ(allocate(cuda, kGiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_LT(free_bytes(cuda), kGiB);
  const auto server = first_server();
  EXPECT_EQ(control(fmt::format("get_client_list {}\n", server)), fmt::format("{}\n", ::getpid()));
  EXPECT_THAT(control("ps\n"), HasSubstr(fmt::format("\n{:<10}1 ", ::getpid())));
}

TEST_F(Mps, AClientsOwnVariablesOnlyTighten) {
  start();
  control("set_default_device_pinned_mem_limit 0 8G\nset_default_active_thread_percentage 30\n");
  const ScopedEnvironment memory("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=4G");
  const ScopedEnvironment threads("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "90");
  const CudaInTree cuda(machine_);
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(attribute(cuda, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 38);
  ASSERT_EQ(create_context(cuda), CUDA_SUCCESS);
  EXPECT_EQ(allocate(cuda, 4 * kGiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(allocate(cuda, 3 * kGiB), CUDA_SUCCESS);
}

TEST_F(Mps, ATerminatedClientDoesNoMoreWork) {
  start();
  const CudaInTree cuda(machine_);
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(create_context(cuda), CUDA_SUCCESS);
  const auto server = first_server();
  EXPECT_EQ(control(fmt::format("terminate_client {} 1\n", server)), "201\n");
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(control(fmt::format("terminate_client {} {}\n", server, ::getpid())), "0\n");
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_MPS_CLIENT_TERMINATED);
  EXPECT_EQ(allocate(cuda, 4096), CUDA_ERROR_MPS_CLIENT_TERMINATED);
}

TEST_F(Mps, AClientWhoseServerIsGoneDoesNoMoreWork) {
  start();
  const CudaInTree cuda(machine_);
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  ASSERT_EQ(create_context(cuda), CUDA_SUCCESS);
  control(fmt::format("shutdown_server {} -f\nquit\n", first_server()));
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_ERROR_MPS_RPC_FAILURE);
}

TEST_F(Mps, AServerThatDoesNotStartRefusesItsClients) {
  machine_.file("/usr/local/nvidia/bin/nvidia-cuda-mps-server", "not a program");
  start();
  const CudaInTree cuda(machine_);
  EXPECT_EQ(cuda.cuInit(0), CUDA_ERROR_MPS_CONNECTION_FAILED);
}

TEST_F(Mps, ASocketWithoutADaemonIsNoDaemon) {
  start();
  control("quit\n");
  EXPECT_TRUE(std::filesystem::exists(pipes_ + "/control"));
  const CudaInTree cuda(machine_);
  ASSERT_EQ(cuda.cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(attribute(cuda, CU_DEVICE_ATTRIBUTE_MPS_ENABLED), 0);
  EXPECT_EQ(attribute(cuda, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 132);
}

TEST_F(Mps, TheSocketOfALongDirectoryIsFound) {
  pipes_ = machine_.path("/" + std::string(60, 'a') + std::string(60, 'b'));
  start();
  EXPECT_EQ(control("get_default_client_priority\n"), "0\n");
}

TEST_F(Mps, NonsenseHarmsOnlyWhoSendsIt) {
  start();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(pipes_.size() + 9, sizeof address.sun_path);
  fmt::format_to(address.sun_path, "{}/control", pipes_);
  for (const std::size_t size : {0U, 1U, 4U, 4096U}) {
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const std::string bytes(size, '\x7f');
    EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(size));
    ::close(fd);
  }
  EXPECT_EQ(control(std::string(3000, 'x') + "\nget_default_client_priority\n").substr(0, 17),
            "Unknown command \"");
  EXPECT_THAT(control("get_default_client_priority\n"), "0\n");
}

}  // namespace
}  // namespace gantry::sim::cuda
