// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/cuda_under_test.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace gantry::sim::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

constexpr const char* kTrainingPtx =
    ".version 3.0\n.target sm_30\n.address_size 64\n"
    ".entry gantryForward() { ret; }\n.entry gantrySoftmaxGradient() { ret; }\n"
    ".entry gantryUpdate() { ret; }\n.entry gantryPredict() { ret; }\n";

// Two rows of two pixels, two classes; see training_kernels.hpp.
struct Model {
  explicit Model(const Api& cuda) {
    const float values[] = {1, 2, 3, 4};
    const unsigned classes_of_rows[] = {1, 0};
    for (CUdeviceptr* pointer : {&x, &w, &scores, &labels}) {
      EXPECT_EQ(cuda.cuMemAlloc_v2(pointer, sizeof values), CUDA_SUCCESS);
      EXPECT_EQ(cuda.cuMemcpyHtoD_v2(*pointer, values, sizeof values), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuda.cuMemcpyHtoD_v2(labels, classes_of_rows, sizeof classes_of_rows), CUDA_SUCCESS);
  }
  static std::vector<float> floats(const Api& cuda, CUdeviceptr pointer) {
    std::vector<float> out(4);
    EXPECT_EQ(cuda.cuMemcpyDtoH_v2(out.data(), pointer, 16), CUDA_SUCCESS);
    return out;
  }
  CUdeviceptr x = 0, w = 0, scores = 0, labels = 0;
  unsigned rows = 2, pixels = 2, classes = 2;
};

CUresult launch(const Api& cuda, CUfunction function, unsigned threads, void** arguments) {
  EXPECT_EQ(cuda.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_SUCCESS);
  return cuda.cuCtxSynchronize();
}

TEST(CudaTraining, ForwardMultipliesAndLeavesOutThreadsThatWereNotLaunched) {
  const LoadedCuda cuda;
  const CUfunction forward = ready(cuda, "gantryForward", kTrainingPtx);
  Model model(cuda);
  void* arguments[] = {&model.x,    &model.w,      &model.scores,
                       &model.rows, &model.pixels, &model.classes};
  EXPECT_EQ(launch(cuda, forward, 3, arguments), CUDA_SUCCESS);
  EXPECT_THAT(Model::floats(cuda, model.scores), ElementsAre(7, 10, 15, 4)) << "the fourth is old";
}

TEST(CudaTraining, GradientIsSoftmaxLessTheLabel) {
  const LoadedCuda cuda;
  const CUfunction gradient = ready(cuda, "gantrySoftmaxGradient", kTrainingPtx);
  Model model(cuda);
  void* arguments[] = {&model.x, &model.labels, &model.scores, &model.rows, &model.classes};
  EXPECT_EQ(launch(cuda, gradient, 32, arguments), CUDA_SUCCESS);
  const float low = 0.26894142F / 2;  // 1 / (1 + e), of two rows
  EXPECT_THAT(Model::floats(cuda, model.scores),
              ElementsAre(FloatNear(low, 1e-7F), FloatNear(-low, 1e-7F),
                          FloatNear(low - 0.5F, 1e-7F), FloatNear(0.5F - low, 1e-7F)));
}

TEST(CudaTraining, UpdateGoesDownTheSlopeAndPredictTakesTheHighest) {
  const LoadedCuda cuda;
  const CUfunction update = ready(cuda, "gantryUpdate", kTrainingPtx);
  Model model(cuda);
  float rate = 0.5F;
  void* arguments[] = {&model.x,      &model.scores,  &model.w, &model.rows,
                       &model.pixels, &model.classes, &rate};
  EXPECT_EQ(launch(cuda, update, 4, arguments), CUDA_SUCCESS);
  EXPECT_THAT(Model::floats(cuda, model.w), ElementsAre(-4, -5, -4, -6));
  const CUfunction predict = ready(cuda, "gantryPredict", kTrainingPtx);
  Model other(cuda);
  void* scores[] = {&other.x, &other.labels, &other.rows, &other.classes};
  EXPECT_EQ(launch(cuda, predict, 2, scores), CUDA_SUCCESS);
  unsigned best[2] = {};
  EXPECT_EQ(cuda.cuMemcpyDtoH_v2(best, other.labels, sizeof best), CUDA_SUCCESS);
  EXPECT_THAT(best, ElementsAre(1U, 1U));
}

TEST(CudaTraining, SizesBeyondTheMemoryAreFaultsAndNotReads) {
  for (const unsigned rows : {3000000U, 4294967295U}) {
    const LoadedCuda cuda;
    const CUfunction forward = ready(cuda, "gantryForward", kTrainingPtx);
    Model model(cuda);
    model.rows = rows;
    model.pixels = rows;
    void* arguments[] = {&model.x,    &model.w,      &model.scores,
                         &model.rows, &model.pixels, &model.classes};
    EXPECT_EQ(launch(cuda, forward, 4, arguments), CUDA_ERROR_ILLEGAL_ADDRESS) << rows;
  }
  const LoadedCuda cuda;
  const CUfunction predict = ready(cuda, "gantryPredict", kTrainingPtx);
  Model model(cuda);
  CUdeviceptr odd = model.x + 2;
  void* arguments[] = {&odd, &model.labels, &model.rows, &model.classes};
  EXPECT_EQ(launch(cuda, predict, 2, arguments), CUDA_ERROR_MISALIGNED_ADDRESS);
}

}  // namespace
}  // namespace gantry::sim::cuda
