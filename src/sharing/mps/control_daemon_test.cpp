// SPDX-License-Identifier: Apache-2.0
#include "sharing/mps/control_daemon.hpp"

#include "support/tree.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gantry::mps {
namespace {

using testing::HasSubstr;

// Replaces NVIDIA's programs: records its commands, and answers after it was started.
constexpr std::string_view kStandIn = R"sh(#!/bin/sh
pipe=$CUDA_MPS_PIPE_DIRECTORY
told=$pipe/../told
if [ "$1" = -d ]; then : > "$pipe/up"; echo "daemon $CUDA_VISIBLE_DEVICES" >> "$told"; exit 0; fi
read -r line
[ -e "$pipe/up" ] || { echo "Cannot find MPS control daemon process"; exit 1; }
[ "$line" != quit ] || rm "$pipe/up"
echo "$line" >> "$told"
)sh";

// In /tmp, because the daemon has another /dev/shm, and tests usually have their trees in /dev/shm.
class MpsControl : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: the daemon has a /dev/shm of its own";
    program("nvidia-cuda-mps-control", kStandIn);
    program("nvidia-smi", "#!/bin/sh\necho \"smi $*\" >> $CUDA_MPS_PIPE_DIRECTORY/../told\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  static std::string make_root() {
    std::string name = testing::TempDir() + "gantry-mps-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    return name;
  }
  void program(const std::string& name, std::string_view text) const {
    const auto path = root_ + "/usr/bin/" + name;
    std::filesystem::create_directories(root_ + "/usr/bin");
    std::ofstream(path) << text;
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
  ControlDaemon control() const {
    return *ControlDaemon::find(host_, "/run/nvidia/mps", RunMode::Direct);
  }
  std::string told() const { return *host_.read(place_ + "told"); }

  std::string root_ = make_root();
  sys::Host host_ = *sys::Host::at(root_);
  std::string place_ = "/run/nvidia/mps/nvidia.com/gpu/";
  DaemonPlan plan_{.resource = "nvidia.com/gpu",
                   .gpus = {{{"GPU-a"}, 4096}, {{"GPU-b"}, 2048}},
                   .thread_percentage = 25};
};

TEST_F(MpsControl, StartsADaemonWithItsLimits) {
  const auto started = control().start(plan_);
  ASSERT_TRUE(started.ok()) << started.error().text();
  EXPECT_EQ(told(),
            "smi -i GPU-a -c EXCLUSIVE_PROCESS\n"
            "smi -i GPU-b -c EXCLUSIVE_PROCESS\n"
            "daemon GPU-a,GPU-b\n"
            "set_default_device_pinned_mem_limit 0 4096M\n"
            "set_default_device_pinned_mem_limit 1 2048M\n"
            "set_default_active_thread_percentage 25\n"
            "get_default_active_thread_percentage\n");
  EXPECT_TRUE(host_.exists(place_ + ".started"));
  EXPECT_TRUE(host_.exists("/run/nvidia/mps/shm"));
}

TEST_F(MpsControl, ADaemonThatAnswersIsKept) {
  ASSERT_TRUE(control().start(plan_).ok());
  std::filesystem::resize_file(root_ + place_ + "told", 0);
  ASSERT_TRUE(control().start(plan_).ok());
  EXPECT_THAT(told(), testing::Not(HasSubstr("daemon")));
  EXPECT_THAT(told(), HasSubstr("set_default_active_thread_percentage 25"));
}

TEST_F(MpsControl, StopsItAndGivesTheGpusBack) {
  ASSERT_TRUE(control().start(plan_).ok());
  ASSERT_TRUE(control().stop(plan_).ok());
  EXPECT_THAT(told(),
              testing::EndsWith("quit\nsmi -i GPU-a -c DEFAULT\nsmi -i GPU-b -c DEFAULT\n"));
  EXPECT_FALSE(host_.exists(place_ + ".started"));
  EXPECT_FALSE(control().check("nvidia.com/gpu").ok());
}

TEST_F(MpsControl, SaysWhatTheProgramSaidWhenItFails) {
  program("nvidia-smi", "#!/bin/sh\necho 'Insufficient Permissions'; exit 4\n");
  const auto started = control().start(plan_);
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().text(), HasSubstr("status 4: Insufficient Permissions"));
}

TEST_F(MpsControl, LeavesNothingOfAStartThatFailed) {
  program("nvidia-cuda-mps-control", "#!/bin/sh\nexit 3\n");
  ASSERT_FALSE(control().start(plan_).ok());
  control().clear(plan_);
  EXPECT_FALSE(host_.exists(place_));
}

TEST(MpsProgram, ItsLackIsNamedWithWhatHelps) {
  const test::Tree tree;
  const auto none = ControlDaemon::find(tree.host(), "/run/nvidia/mps", RunMode::Direct);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Errc::NotFound);
  EXPECT_THAT(none.error().text(), HasSubstr("nvidia-cuda-mps-control"));
}

}  // namespace
}  // namespace gantry::mps
