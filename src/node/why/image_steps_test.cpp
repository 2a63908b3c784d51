// SPDX-License-Identifier: Apache-2.0
#include "node/why/image_steps.hpp"

#include "support/elf_image.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::why {
namespace {

using explain::Explanation;
using explain::Step;
using explain::StepStatus;
using testing::HasSubstr;

constexpr const char* kPlace = "usr/local/lib/python3.11/site-packages/";
constexpr const char* kCudaTorch =
    "__version__ = '2.6.0+cu124'\ncuda: Optional[str] = '12.4'\nhip: Optional[str] = None\n";

// An image that lacks nothing, on a machine with two GPUs; each test breaks one thing.
class WhyImageTest : public testing::Test {
 protected:
  WhyImageTest() {
    root_.file("bin/sh", test::elf_image({})).file("lib64/ld-linux-x86-64.so.2");
    root_.file(in_site("torch/version.py"), kCudaTorch);
    for (const auto* library : {"cuda_runtime/lib/libcudart.so.12", "cublas/lib/libcublas.so.12",
                                "cudnn/lib/libcudnn.so.9"})
      root_.file(in_site(std::string("nvidia/") + library));
    config_.architecture = "amd64";
    config_.env = {"PATH=/usr/local/bin:/usr/bin:/bin"};
    machine_.driver = {.version = "570.86.15", .cuda_version = "12.8"};
    for (int index = 0; index < 2; ++index)
      machine_.gpus.push_back({.index = index, .uuid = {fmt::format("GPU-{}", index)}});
  }

  static std::string in_site(const std::string& path) { return kPlace + path; }

  Explanation explanation() {
    auto image = image::open_image(root_.root());
    EXPECT_TRUE(image.ok());
    image->config = config_;
    image->has_config = has_config_;
    return why_image(*image, machine_, "train.tar");
  }
  Step first(StepStatus verdict) {
    const auto all = explanation();
    return all.first(verdict) == nullptr ? Step{.id = "none"} : *all.first(verdict);
  }
  Step first_failed() { return first(StepStatus::Failed); }
  Step first_doubtful() { return first(StepStatus::Warning); }
  Step step(std::string_view id) {
    for (auto& one : explanation().steps) {
      if (one.id == id) return one;
    }
    return {.id = "none"};
  }

  test::Tree root_;
  image::ImageConfig config_;
  bool has_config_ = true;
  model::Inventory machine_;
};

TEST_F(WhyImageTest, WhatLacksNothingHolds) {
  EXPECT_EQ(first_failed().id, "none") << first_failed().cause;
  EXPECT_EQ(first_doubtful().id, "none") << first_doubtful().cause;
  EXPECT_EQ(first(StepStatus::Unknown).id, "none");
  EXPECT_THAT(findings_text(explanation(), false),
              HasSubstr("Verdict: nothing was found that keeps it from a GPU"));
}

TEST_F(WhyImageTest, AFrameworkForProcessorsOnly) {
  root_.file(in_site("torch/version.py"),
             "__version__ = '2.6.0+cpu'\ncuda: Optional[str] = None\n");
  EXPECT_EQ(first_failed().id, "image.framework");
  EXPECT_THAT(first_failed().read, HasSubstr("2.6.0+cpu, no CUDA"));
  const auto text = findings_text(explanation(), false);
  EXPECT_THAT(text, HasSubstr("Verdict: it cannot use a GPU here, for 1 reason\n"));
  EXPECT_LT(text.find("built without CUDA"), text.find("Do:      in the image: install torch"));
}

TEST_F(WhyImageTest, AFrameworkOfAnotherVendor) {
  root_.file(in_site("torch/version.py"),
             "__version__ = '2.6.0+rocm6.2'\ncuda: Optional[str] = None\n"
             "hip: Optional[str] = '6.2.41'\n");
  EXPECT_THAT(first_failed().cause, HasSubstr("built for ROCm"));
}

TEST_F(WhyImageTest, AFrameworkWhoseCudaWasRemoved) {
  root_.file(in_site("torch/lib/libtorch_cpu.so"));
  EXPECT_EQ(first_failed().id, "image.framework");
  root_.file(in_site("torch/lib/libtorch_cuda.so"));
  EXPECT_EQ(first_failed().id, "none");
}

TEST_F(WhyImageTest, TensorFlowSaysItInPairsOrInADictionary) {
  const auto with = [&](const char* text) {
    root_.file(in_site("tensorflow/python/platform/build_info.py"), text);
    return step("image.framework");
  };
  constexpr const char* kPairs =
      "build_info = collections.OrderedDict([('cuda_version', '12.5.1'), ('is_cuda_build', True)])";
  EXPECT_EQ(with(kPairs).verdict, StepStatus::Ok);
  EXPECT_THAT(with(kPairs).read, HasSubstr("CUDA 12.5.1"));
  EXPECT_EQ(with("build_info = {'is_cuda_build': True}\n").verdict, StepStatus::Ok);
  EXPECT_EQ(with("build_info = OrderedDict([('is_cuda_build', False)])").verdict,
            StepStatus::Warning);
}

TEST_F(WhyImageTest, AFrameworkOfAVirtualEnvironmentInThePath) {
  root_.file("app/.venv/lib/python3.12/site-packages/torch/version.py", "cuda = None\n");
  config_.env = {"PATH=/app/.venv/bin:/usr/bin"};
  EXPECT_EQ(first_doubtful().id, "image.framework");
}

TEST_F(WhyImageTest, CudaNewerThanTheDriver) {
  machine_.driver = {.version = "470.82.01", .cuda_version = "11.4"};
  EXPECT_EQ(first_failed().id, "image.cuda-version");
  EXPECT_THAT(first_failed().cause, HasSubstr("PyTorch is for CUDA 12.4"));
  EXPECT_THAT(first_failed().remedy, HasSubstr("an image for CUDA 11.4 or older"));
  // The driver does not say it, but its branch does.
  machine_.driver.cuda_version = "";
  EXPECT_EQ(first_failed().id, "image.cuda-version");
}

TEST_F(WhyImageTest, WithinAMajorVersionItWorks) {
  machine_.driver = {.version = "525.60.13", .cuda_version = "12.0"};
  EXPECT_EQ(first_failed().id, "none");
  EXPECT_EQ(first_doubtful().id, "image.cuda-version");
  EXPECT_THAT(first_doubtful().cause, HasSubstr("PTX"));
}

TEST_F(WhyImageTest, APackageForForwardCompatibilityHelps) {
  machine_.driver = {.version = "470.82.01", .cuda_version = "11.4"};
  const std::string note = R"({"format":1,"CUDA version":"12.4","driver":[470,525],"device":[1]})";
  root_.file("usr/local/cuda/compat/libcuda.so.550.54.14",
             test::elf_image({.note_owner = "NVIDIA Corporation",
                              .note = note,
                              .note_section = ".note.cuda.fwd_compatibility"}));
  EXPECT_EQ(first_failed().id, "none") << first_failed().cause;
  EXPECT_THAT(step("image.cuda-version").read, HasSubstr("works on its branch"));
  config_.env.push_back("LD_LIBRARY_PATH=/usr/local/cuda/compat");
  root_.link("usr/local/cuda/compat/libcuda.so.1", "libcuda.so.550.54.14");
  EXPECT_EQ(first_failed().id, "none") << first_failed().cause;
  machine_.driver.version = "515.43.04";
  EXPECT_EQ(first_failed().id, "image.cuda-version");
  EXPECT_THAT(first_failed().cause, HasSubstr("does not list driver branch 515"));
}

TEST_F(WhyImageTest, TheRuntimeLibraryCountsWhereNoFrameworkIs) {
  root_.remove(in_site("torch/version.py"));
  root_.file("usr/local/cuda/lib64/libcudart.so.13.0.48");
  EXPECT_EQ(first_failed().id, "image.cuda-version");
  EXPECT_THAT(first_failed().read, HasSubstr("its libcudart is for CUDA 13.0"));
  root_.remove("usr/local/cuda/lib64/libcudart.so.13.0.48");
  root_.directory(in_site("nvidia_cuda_runtime_cu12-12.9.79.dist-info"));
  EXPECT_THAT(first_doubtful().read, HasSubstr("CUDA 12.9"));
}

TEST_F(WhyImageTest, LibrariesThatAreMissing) {
  root_.remove(in_site("nvidia/cudnn/lib/libcudnn.so.9"));
  EXPECT_EQ(first_failed().id, "image.libraries");
  EXPECT_THAT(first_failed().read, HasSubstr("no libcudnn"));
  EXPECT_THAT(first_failed().remedy, HasSubstr("without --no-deps"));
}

TEST_F(WhyImageTest, LibrariesOfACondaEnvironmentAreFound) {
  root_.remove(in_site("nvidia/cudnn/lib/libcudnn.so.9"));
  root_.directory("opt/conda/envs/a/lib/python3.11/site-packages");
  root_.file("opt/conda/envs/a/lib/libcudnn.so.9");
  EXPECT_EQ(first_failed().id, "image.libraries");
  config_.env = {"PATH=/opt/conda/envs/a/bin:/usr/bin"};
  EXPECT_EQ(first_failed().id, "none") << first_failed().cause;
}

TEST_F(WhyImageTest, AnImageForAnotherProcessor) {
  auto other = test::elf_image({});
  other[18] = static_cast<char>(183);
  root_.file("bin/sh", other);
  config_.architecture = "arm64";
  EXPECT_EQ(first_failed().id, "image.architecture");
  EXPECT_THAT(first_failed().remedy, HasSubstr("--platform linux/amd64"));
  config_.architecture = "amd64";
  EXPECT_THAT(first_failed().cause, HasSubstr("says amd64, but its programs are for arm64"));
}

TEST_F(WhyImageTest, ItsOwnLibcuda) {
  root_.file("usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14", "elf")
      .link("usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.550.54.14");
  EXPECT_EQ(first_doubtful().id, "image.libcuda");
  EXPECT_THAT(first_doubtful().cause, HasSubstr("driver 550.54.14"));
  config_.env.push_back("LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu");
  EXPECT_EQ(first_failed().id, "image.libcuda");
  EXPECT_THAT(first_failed().remedy, HasSubstr("rm /usr/lib/x86_64-linux-gnu/libcuda.so*"));
}

TEST_F(WhyImageTest, WhatAContainerWithAGpuLeftBehind) {
  root_.file("usr/lib64/libcuda.so.1", "");
  EXPECT_THAT(first_doubtful().cause, HasSubstr("committed from a container"));
}

TEST_F(WhyImageTest, Musl) {
  root_.remove("lib64/ld-linux-x86-64.so.2").file("lib/ld-musl-x86_64.so.1");
  EXPECT_EQ(first_failed().id, "image.musl");
  root_.remove("lib/ld-musl-x86_64.so.1");
  EXPECT_EQ(first_failed().id, "image.loader");
}

TEST_F(WhyImageTest, WhichGpusItAsksFor) {
  config_.env = {"NVIDIA_VISIBLE_DEVICES=all"};
  EXPECT_EQ(first_failed().id, "none") << first_failed().cause;
  EXPECT_THAT(step("image.devices").read, HasSubstr("2 of this machine's 2 GPUs"));
  config_.env = {"NVIDIA_VISIBLE_DEVICES=7"};
  EXPECT_EQ(first_failed().id, "image.devices");
  config_.env = {"NVIDIA_VISIBLE_DEVICES=void"};
  EXPECT_EQ(first_doubtful().id, "image.devices");
  config_.env = {"NVIDIA_VISIBLE_DEVICES=all"};
  machine_.gpus.clear();
  EXPECT_EQ(step("image.devices").verdict, StepStatus::Unknown);
}

TEST_F(WhyImageTest, WhichLibrariesItAsksFor) {
  config_.env = {"NVIDIA_DRIVER_CAPABILITIES=graphics"};
  EXPECT_EQ(first_failed().id, "image.capabilities");
  config_.env = {"NVIDIA_DRIVER_CAPABILITIES=compute"};
  EXPECT_EQ(first_doubtful().id, "image.capabilities");
  config_.env = {"NVIDIA_DRIVER_CAPABILITIES=compute,utility"};
  EXPECT_EQ(first_doubtful().id, "none");
  config_.env = {"NVIDIA_DRIVER_CAPABILITIES=nonsense"};
  EXPECT_EQ(first_failed().id, "image.devices");
}

TEST_F(WhyImageTest, WhatItRequires) {
  config_.env = {"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_REQUIRE_CUDA=cuda>=12.9"};
  EXPECT_EQ(first_failed().id, "image.requirements");
  EXPECT_THAT(first_failed().cause, HasSubstr("12.8"));
  config_.env.back() = "NVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=tesla,driver>=470";
  EXPECT_EQ(first_failed().id, "none");
}

TEST_F(WhyImageTest, TrapsOfTheEnvironment) {
  config_.env = {"CUDA_VISIBLE_DEVICES=-1"};
  EXPECT_EQ(first_failed().id, "image.cuda-visible");
  config_.env = {"PATH=/opt/bin"};
  EXPECT_EQ(first_doubtful().id, "image.path");
  config_.env = {"LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs/"};
  EXPECT_EQ(first_doubtful().id, "image.stubs");
}

TEST_F(WhyImageTest, WhatCannotBeKnownIsSaid) {
  has_config_ = false;
  EXPECT_EQ(first(StepStatus::Unknown).id, "image.environment");
  machine_ = {};
  EXPECT_EQ(step("image.cuda-version").verdict, StepStatus::Unknown);
  has_config_ = true;
  config_.notes = {"it has 2 images; only the first was looked at"};
  EXPECT_THAT(step("image.part").read, HasSubstr("2 images"));
}

}  // namespace
}  // namespace gantry::why
