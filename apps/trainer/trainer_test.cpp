// SPDX-License-Identifier: Apache-2.0
#include "trainer/trainer.hpp"

#include "support/captured_output.hpp"
#include "support/machine.hpp"
#include "support/paths.hpp"
#include "trainer/gpu_model.hpp"
#include "trainer/reference.hpp"
#include "workload/context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace gantry::workload {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Outcome = test::ProgramResult;

Outcome run(const Options& options, const TrainerOptions& how) {
  return test::run_captured(
      [&](std::FILE* out, std::FILE* err) { return train(options, how, out, err); });
}

double accuracy_at(const std::string& out, int step) {
  const std::string line = "Accuracy at step " + std::to_string(step) + ": ";
  const auto at = out.find(line);
  return at == std::string::npos ? -1 : std::stod(out.substr(at + line.size()));
}

TEST(Digits, AreTheSameInEveryRunAndOfAllKinds) {
  const Digits digits = draw_digits(500, 1);
  EXPECT_EQ(digits.pixels, draw_digits(500, 1).pixels);
  EXPECT_NE(digits.pixels, draw_digits(500, 2).pixels);
  for (std::uint32_t digit = 0; digit < kClasses; ++digit)
    EXPECT_THAT(digits.labels, ::testing::Contains(digit).Times(::testing::Ge(20)));
  EXPECT_THAT(digits.pixels, ::testing::Each(AllOf(::testing::Ge(0.0F), ::testing::Le(1.0F))));
}

TEST(Reference, LearnsByItself) {
  const Digits digits = draw_digits(200, 1);
  std::vector<float> weights(kPixels * kClasses);
  for (int step = 0; step < 30; ++step) reference_step(digits.pixels, digits.labels, 0.5F, weights);
  const auto found = reference_predict(digits.pixels, weights);
  std::size_t right = 0;
  for (std::size_t i = 0; i < found.size(); ++i) right += found[i] == digits.labels[i] ? 1 : 0;
  EXPECT_GT(right, 150U);
}

TEST(GpuModel, HasTheWeightsAndAnswersOfTheReference) {
  const test::Machine machine("h200");
  const auto cuda = open_cuda(machine.cuda_library());
  ASSERT_TRUE(cuda.ok());
  ASSERT_EQ(cuda->cuInit(0), CUDA_SUCCESS);
  Context context(*cuda);
  ASSERT_TRUE(context.create(0).ok());
  const auto model = GpuModel::make(*cuda);
  ASSERT_TRUE(model.ok());
  const Digits digits = draw_digits(300, 7);
  const auto there = model->upload(digits);
  ASSERT_TRUE(there.ok());
  std::vector<float> wanted(kPixels * kClasses);
  const std::span<const float> pixels = digits.pixels;
  const std::span<const std::uint32_t> labels = digits.labels;
  for (const std::size_t first : {0U, 100U, 200U}) {
    ASSERT_TRUE(model->step(*there, first, 100, 0.5F).ok());
    reference_step(pixels.subspan(first * kPixels, 100 * kPixels), labels.subspan(first, 100), 0.5F,
                   wanted);
  }
  const auto weights = model->weights();
  ASSERT_TRUE(weights.ok());
  EXPECT_THAT(*weights, ::testing::Pointwise(::testing::FloatNear(1e-5F), wanted));
  const auto found = model->predict(*there);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, reference_predict(digits.pixels, wanted));
}

TEST(Trainer, ReadsDigitsBetterStepByStep) {
  const test::Machine machine("h200");
  const Outcome result =
      run({.library = machine.cuda_library()}, {.max_steps = 100, .verify = true});
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("Found device 0 with properties:\nname: NVIDIA H200 "
                                          "major: 9 minor: 0 memoryClockRate(GHz): 1.98\n"
                                          "pciBusID: "),
                                HasSubstr("totalMemory: "), HasSubstr("2570 weights after 10"),
                                HasSubstr("compute capability: 9.0)\n")));
  EXPECT_LT(accuracy_at(result.out, 0), 0.2);
  EXPECT_GT(accuracy_at(result.out, 50), 0.6);
  EXPECT_GT(accuracy_at(result.out, 100), 0.75);
  EXPECT_EQ(accuracy_at(result.out, 110), -1);
}

TEST(Trainer, LearnsOnTheSimulatedH200AsOnTheRealOne) {
  std::ifstream file(test::source_dir() + "/docs/measured/h200/gantry-trainer.txt");
  std::ostringstream measured;
  measured << file.rdbuf();
  const test::Machine machine("h200");
  const Outcome result = run({.library = machine.cuda_library()}, {.max_steps = 200});
  for (int step = 0; step <= 200; step += 10) {
    EXPECT_NEAR(accuracy_at(result.out, step), accuracy_at(measured.str(), step), 0.002) << step;
  }
  const auto device = [](const std::string& text) {
    const auto from = text.find("name: ");
    return text.substr(from, text.find("\n2", from) - from);
  };
  EXPECT_EQ(device(result.out), device(measured.str()));
}

TEST(Trainer, NamesTheSeedsCardAsItsLogDoes) {
  const test::Machine machine("k80");
  const Outcome result = run({.library = machine.cuda_library()}, {.max_steps = 0});
  EXPECT_THAT(result.out,
              ContainsRegex("[0-9-]+ [0-9:]+\\.[0-9]{6}: I gantry-trainer\\] Found device 0 with "
                            "properties:\nname: Tesla K80 major: 3 minor: 7 "
                            "memoryClockRate\\(GHz\\): 0\\.8235\n"));
  EXPECT_THAT(result.out, HasSubstr("Accuracy at step 0: 0."));
  EXPECT_EQ(result.status, 0);
}

TEST(Trainer, RunsOnTheDeviceThatIsNamed) {
  const test::Machine machine("h200x8");
  EXPECT_THAT(run({.library = machine.cuda_library(), .device = 5}, {.max_steps = 1}).out,
              HasSubstr("Found device 5 with properties"));
  const Outcome none = run({.library = machine.cuda_library(), .device = 8}, {});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("CUDA_ERROR_INVALID_DEVICE, 101"));
}

TEST(Trainer, AGpuThatComputesNothingIsFoundOut) {
  const Outcome result =
      run({.library = test::built("apps/workload/libwrong_cuda.so")}, {.max_steps = 100});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(
      result.err,
      AllOf(StartsWith("gantry-trainer: nothing was learnt: after 100 steps the accuracy is 0.1"),
            HasSubstr("\n  remedy: ")));
  const Outcome verified = run({.library = test::built("apps/workload/libwrong_cuda.so")},
                               {.max_steps = 20, .verify = true});
  EXPECT_EQ(verified.status, 1);
  EXPECT_THAT(verified.err, HasSubstr(" after 10 steps is 0, but "));
  EXPECT_EQ(run({.library = test::built("apps/workload/libwrong_cuda.so")},
                {.max_steps = 1, .verify = true})
                .status,
            1)
      << "however few there are";
}

TEST(Trainer, WithoutAGpuSaysWhatIsMissing) {
  const Outcome none = run({.library = "/nonexistent/libcuda.so.1"}, {});
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("the CUDA driver library cannot be loaded: /nonexistent"));
  const test::Machine machine("no-nodes");
  const Outcome hidden = run({.called = "tf-mnist", .library = machine.cuda_library()}, {});
  EXPECT_EQ(hidden.status, 1);
  EXPECT_THAT(hidden.out, Not(HasSubstr("Accuracy")));
  EXPECT_THAT(hidden.err, AllOf(StartsWith("tf-mnist: cuInit: no CUDA-capable device"),
                                HasSubstr("remedy: gantry doctor")));
}

}  // namespace
}  // namespace gantry::workload
