// SPDX-License-Identifier: Apache-2.0
#include "node/why/container_steps.hpp"

#include "gpu/loader/ld_cache.hpp"
#include "support/tree.hpp"

#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::why {
namespace {

using explain::Explanation;
using explain::Step;
using explain::StepStatus;
using testing::HasSubstr;

constexpr const char* kHwcaps = "/usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v2";
constexpr const char* kImage = "30 1 0:40 / / rw - overlay overlay rw\n";
constexpr const char* kOurs =
    "36 30 98:0 /var/lib/gantry/driver/580.159.04-1f2e3d4c5b6a7988/lib64 "
    "/usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v2 ro - ext4 /dev/sda rw\n";

// A container that lacks nothing; each test breaks one link.
class ContainerStepsTest : public testing::Test {
 protected:
  ContainerStepsTest() {
    root_.file("lib64/ld-linux-x86-64.so.2").file("usr/local/cuda/lib64/libcudart.so.12");
    root_.file(std::string(kHwcaps).substr(1) + "/libcuda.so.1");
    inside_.nodes = {"nvidia-uvm", "nvidia0", "nvidiactl"};
    inside_.mountinfo = std::string(kImage) + kOurs;
    inside_.driver_version = "580.159.04";
  }

  std::vector<Step> steps() { return container_steps(*rootfs::Root::at(root_.root()), inside_); }

  Step first(StepStatus verdict) {
    const Explanation explanation{.steps = steps()};
    return explanation.first(verdict) == nullptr ? Step{.id = "none"} : *explanation.first(verdict);
  }
  Step first_failed() { return first(StepStatus::Failed); }
  Step first_doubtful() { return first(StepStatus::Warning); }

  test::Tree root_;
  ContainerView inside_;
};

TEST_F(ContainerStepsTest, WhatLacksNothingHolds) {
  EXPECT_EQ(first_failed().id, "none");
  EXPECT_EQ(first_doubtful().id, "none");
}

TEST_F(ContainerStepsTest, WithoutANodeItSaysHowOneAsksForIt) {
  inside_.nodes.clear();
  auto step = first_failed();
  EXPECT_EQ(step.id, "container.nodes");
  EXPECT_THAT(step.read, HasSubstr("NVIDIA_VISIBLE_DEVICES not set"));
  EXPECT_THAT(step.remedy, HasSubstr("nvidia.com/gpu: 1"));
  inside_.environment = {"NVIDIA_VISIBLE_DEVICES=all"};
  EXPECT_THAT(first_failed().cause, HasSubstr("ignores it"));
  inside_.environment = {"NVIDIA_VISIBLE_DEVICES=void"};
  EXPECT_THAT(first_failed().cause, HasSubstr("wants no GPU"));
}

TEST_F(ContainerStepsTest, WithoutTheNodesThatAllGpusShare) {
  inside_.nodes = {"nvidia0", "nvidia-uvm"};
  EXPECT_THAT(first_failed().cause, HasSubstr("/dev/nvidiactl is missing"));
  inside_.nodes = {"nvidia0", "nvidiactl"};
  EXPECT_THAT(first_failed().cause, HasSubstr("/dev/nvidia-uvm is missing"));
}

TEST_F(ContainerStepsTest, WhereCudaIsConfiguredToUseNone) {
  for (const auto* none : {"CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=-1,0",
                           "CUDA_VISIBLE_DEVICES=1", "CUDA_VISIBLE_DEVICES=NoDevFiles"}) {
    inside_.environment = {none};
    EXPECT_EQ(first_failed().id, "container.cuda-visible") << none;
  }
  for (const auto* some : {"CUDA_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=GPU-1234"}) {
    inside_.environment = {some};
    EXPECT_EQ(first_failed().id, "none") << some;
  }
}

TEST_F(ContainerStepsTest, OnMusl) {
  root_.remove("lib64/ld-linux-x86-64.so.2").file("lib/ld-musl-x86_64.so.1");
  const auto step = first_failed();
  EXPECT_EQ(step.id, "container.musl");
  EXPECT_THAT(step.remedy, HasSubstr("glibc"));
}

TEST_F(ContainerStepsTest, WithStaticProgramsOnly) {
  root_.remove("lib64/ld-linux-x86-64.so.2");
  EXPECT_EQ(first_failed().id, "container.loader");
}

TEST_F(ContainerStepsTest, WithoutTheLibrary) {
  root_.remove(std::string(kHwcaps).substr(1) + "/libcuda.so.1");
  EXPECT_EQ(first_failed().id, "container.libcuda");
  inside_.environment = {"NVIDIA_DRIVER_CAPABILITIES=utility"};
  EXPECT_THAT(first_failed().remedy, HasSubstr("NVIDIA_DRIVER_CAPABILITIES=compute"));
}

TEST_F(ContainerStepsTest, AFileThatTheLoaderDoesNotLookAtIsNone) {
  root_.remove(std::string(kHwcaps).substr(1) + "/libcuda.so.1");
  root_.file("usr/local/nvidia/lib64/libcuda.so.1");
  EXPECT_EQ(first_failed().id, "container.libcuda");
  inside_.environment = {"LD_LIBRARY_PATH=/usr/local/nvidia/lib64/"};
  inside_.mountinfo += "37 30 98:0 /run/nvidia/driver /usr/local/nvidia/lib64 ro - ext4 x rw\n";
  EXPECT_EQ(first_failed().id, "none");
}

TEST_F(ContainerStepsTest, WithAnotherDriverBeforeOurs) {
  root_.file("opt/old/libcuda.so.384.98").link("opt/old/libcuda.so.1", "libcuda.so.384.98");
  inside_.environment = {"PATH=/bin", "LD_LIBRARY_PATH=/opt/old:/x"};
  const auto step = first_failed();
  EXPECT_EQ(step.id, "container.libcuda");
  EXPECT_THAT(step.cause, HasSubstr("384.98"));
  EXPECT_THAT(step.remedy, HasSubstr("LD_LIBRARY_PATH"));
}

TEST_F(ContainerStepsTest, WithAnImagesOwnDriverInItsCache) {
  root_.file("usr/lib/own/libcuda.so.1");
  root_.file("etc/ld.so.cache",
             *loader::serialize_ld_cache(
                 {.entries = {{.name = "libcuda.so.1", .path = "/usr/lib/own/libcuda.so.1"}}}));
  const auto step = first_failed();
  EXPECT_EQ(step.id, "container.libcuda");
  EXPECT_THAT(step.cause, HasSubstr("from the image, not the node's"));
  EXPECT_THAT(step.remedy, HasSubstr("from the image"));
}

TEST_F(ContainerStepsTest, WithCudasStub) {
  root_.file("usr/local/cuda/lib64/stubs/libcuda.so.1");
  inside_.environment = {"LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs"};
  EXPECT_THAT(first_failed().cause, HasSubstr("stub"));
}

TEST_F(ContainerStepsTest, ForwardCompatibilityIsNoShadow) {
  root_.file("usr/local/cuda/compat/libcuda.so.590.10")
      .link("usr/local/cuda/compat/libcuda.so.1", "libcuda.so.590.10");
  inside_.environment = {"LD_LIBRARY_PATH=/usr/local/cuda/compat"};
  EXPECT_EQ(first_failed().id, "none");
}

TEST_F(ContainerStepsTest, WithAVolumeOverOurs) {
  inside_.mountinfo = std::string(kImage) + kOurs +
                      "40 36 0:50 /var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/nvidia " +
                      kHwcaps + "/libcuda.so.1 rw - tmpfs tmpfs rw\n";
  const auto step = first_failed();
  EXPECT_EQ(step.id, "container.mounts");
  EXPECT_THAT(step.read, HasSubstr("empty-dir"));
  EXPECT_THAT(step.remedy, HasSubstr("elsewhere"));
}

TEST_F(ContainerStepsTest, TheFenceBelongsOverTheDriver) {
  inside_.mountinfo += fmt::format(
      "40 36 98:0 /var/lib/gantry/fence/ee482072f68b6c73/libgantry-fence.so {}/libcuda.so.1 ro - "
      "ext4 /dev/sda rw\n",
      kHwcaps);
  EXPECT_EQ(first_failed().id, "none");
  EXPECT_EQ(first_doubtful().id, "none");
}

TEST_F(ContainerStepsTest, WithAVolumeAboveOurs) {
  inside_.mountinfo += "41 30 0:51 / /usr/lib rw - tmpfs tmpfs rw\n";
  root_.remove(std::string(kHwcaps).substr(1) + "/libcuda.so.1");
  EXPECT_EQ(first_failed().id, "container.mounts");
}

TEST_F(ContainerStepsTest, WithAVolumeOverAPlaceThatIsNotUsed) {
  inside_.mountinfo += "42 30 0:52 /data /usr/local/nvidia/lib64 rw - ext4 /dev/sdb rw\n";
  EXPECT_EQ(first_failed().id, "none");
  EXPECT_EQ(first_doubtful().id, "container.mounts");
}

TEST_F(ContainerStepsTest, WithoutCudaInTheImage) {
  root_.remove("usr/local/cuda/lib64/libcudart.so.12");
  EXPECT_EQ(first_failed().id, "none");
  EXPECT_EQ(first_doubtful().id, "container.cuda");
  inside_.program_names_cuda = true;
  EXPECT_EQ(first_doubtful().id, "none");
}

TEST_F(ContainerStepsTest, WithAFrameworkForProcessorsOnly) {
  const std::string place = "usr/local/lib/python3.11/site-packages/";
  root_.file(place + "torch/version.py", "__version__ = '2.4.0+cpu'\ncuda = None\n");
  auto step = first_failed();
  EXPECT_EQ(step.id, "container.framework");
  EXPECT_THAT(step.cause, HasSubstr("PyTorch"));
  root_.remove(place + "torch/version.py");
  root_.file(place + "tensorflow/python/platform/build_info.py",
             "build_info = {'is_cuda_build': False}\n");
  EXPECT_THAT(first_failed().cause, HasSubstr("TensorFlow"));
  root_.remove(place + "tensorflow/python/platform/build_info.py");
  root_.directory(place + "jaxlib");
  EXPECT_THAT(first_failed().remedy, HasSubstr("jax[cuda12]"));
  root_.directory(place + "jax_cuda12_plugin").directory(place + "onnxruntime/capi");
  step = first_doubtful();
  EXPECT_THAT(step.cause, HasSubstr("ONNX Runtime"));
}

TEST_F(ContainerStepsTest, AFrameworkOfAnEnvironmentIsFound) {
  root_.file("srv/env/lib/python3.12/site-packages/torch/version.py", "cuda = '12.8'\n");
  inside_.environment = {"VIRTUAL_ENV=/srv/env"};
  EXPECT_EQ(first_failed().id, "none");
  EXPECT_THAT(steps().back().read, HasSubstr("/srv/env/lib/python3.12"));
}

TEST_F(ContainerStepsTest, SpecialFilesDoNotBlock) {
  const auto place = root_.path("usr/local/lib/python3.11/site-packages/torch");
  root_.directory("usr/local/lib/python3.11/site-packages/torch").directory("etc");
  ASSERT_EQ(::mkfifo((place + "/version.py").c_str(), 0666), 0);
  ASSERT_EQ(::mkfifo(root_.path("etc/ld.so.cache").c_str(), 0666), 0);
  EXPECT_EQ(first_failed().id, "none");
}

TEST_F(ContainerStepsTest, SymlinksStayInTheContainer) {
  root_.link("opt/x", "/etc").link("opt/up", "../../../../../../../../etc");
  inside_.environment = {"LD_LIBRARY_PATH=/opt/x:/opt/up", "PYTHONPATH=/opt/up"};
  EXPECT_EQ(first_failed().id, "none");
}

}  // namespace
}  // namespace gantry::why
