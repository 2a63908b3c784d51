// SPDX-License-Identifier: Apache-2.0
#include "trainer/gpu_model.hpp"

#include "trainer/ptx.hpp"
#include "workload/context.hpp"

namespace gantry::workload {
namespace {

constexpr unsigned kThreads = 128;
constexpr std::size_t kWeights = kPixels * kClasses;

Result<CUdeviceptr> copy_in(const Cuda& cuda, const void* data, std::size_t bytes) {
  CUdeviceptr pointer = 0;
  CUDA_TRY(cuda, cuMemAlloc_v2, &pointer, bytes);
  CUDA_TRY(cuda, cuMemcpyHtoD_v2, pointer, data, bytes);
  return pointer;
}

}  // namespace

Result<GpuModel> GpuModel::make(const Cuda& cuda) {
  GpuModel model(cuda);
  GANTRY_TRY(CUmodule module, load_ptx(cuda, kTrainerPtx));
  GANTRY_TRY(model.forward_, find_kernel(cuda, module, "gantryForward"));
  GANTRY_TRY(model.gradient_, find_kernel(cuda, module, "gantrySoftmaxGradient"));
  GANTRY_TRY(model.update_, find_kernel(cuda, module, "gantryUpdate"));
  GANTRY_TRY(model.predict_, find_kernel(cuda, module, "gantryPredict"));
  const std::vector<float> zeros(kWeights);
  GANTRY_TRY(model.weights_, copy_in(cuda, zeros.data(), kWeights * sizeof(float)));
  return model;
}

Result<GpuDigits> GpuModel::upload(const Digits& digits) const {
  GpuDigits there{.count = digits.labels.size()};
  GANTRY_TRY(there.pixels,
             copy_in(*cuda_, digits.pixels.data(), digits.pixels.size() * sizeof(float)));
  GANTRY_TRY(there.labels,
             copy_in(*cuda_, digits.labels.data(), there.count * sizeof(std::uint32_t)));
  CUDA_TRY(*cuda_, cuMemAlloc_v2, &there.scores, there.count * kClasses * sizeof(float));
  return there;
}

Status GpuModel::launch(CUfunction function, std::size_t threads, void** arguments) const {
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  CUDA_TRY(*cuda_, cuLaunchKernel, function, blocks, 1, 1, kThreads, 1, 1, 0, nullptr, arguments,
           nullptr);
  return {};
}

Status GpuModel::score(const GpuDigits& digits, CUdeviceptr pixels, std::size_t count) const {
  CUdeviceptr weights = weights_;
  CUdeviceptr scores = digits.scores;
  auto rows = static_cast<std::uint32_t>(count);
  std::uint32_t width = kPixels;
  std::uint32_t classes = kClasses;
  void* arguments[] = {&pixels, &weights, &scores, &rows, &width, &classes};
  return launch(forward_, count * kClasses, arguments);
}

Status GpuModel::step(const GpuDigits& digits, std::size_t first, std::size_t count,
                      float rate) const {
  CUdeviceptr pixels = digits.pixels + first * kPixels * sizeof(float);
  CUdeviceptr labels = digits.labels + first * sizeof(std::uint32_t);
  CUdeviceptr scores = digits.scores;  // overwritten with the amount by which each of them changes
  CUdeviceptr weights = weights_;
  auto rows = static_cast<std::uint32_t>(count);
  std::uint32_t width = kPixels;
  std::uint32_t classes = kClasses;
  GANTRY_CHECK(score(digits, pixels, count));
  void* gradient[] = {&scores, &labels, &scores, &rows, &classes};
  GANTRY_CHECK(launch(gradient_, count, gradient));
  void* update[] = {&pixels, &scores, &weights, &rows, &width, &classes, &rate};
  return launch(update_, kWeights, update);
}

Result<std::vector<std::uint32_t>> GpuModel::predict(const GpuDigits& digits) const {
  GANTRY_CHECK(score(digits, digits.pixels, digits.count));
  const std::size_t bytes = digits.count * sizeof(std::uint32_t);
  CUdeviceptr best = 0;
  CUDA_TRY(*cuda_, cuMemAlloc_v2, &best, bytes);
  CUdeviceptr scores = digits.scores;
  auto rows = static_cast<std::uint32_t>(digits.count);
  std::uint32_t classes = kClasses;
  void* arguments[] = {&scores, &best, &rows, &classes};
  GANTRY_CHECK(launch(predict_, digits.count, arguments));
  CUDA_TRY(*cuda_, cuCtxSynchronize);  // an error of a kernel is reported here
  std::vector<std::uint32_t> found(digits.count);
  CUDA_TRY(*cuda_, cuMemcpyDtoH_v2, found.data(), best, bytes);
  CUDA_TRY(*cuda_, cuMemFree_v2, best);
  return found;
}

Result<std::vector<float>> GpuModel::weights() const {
  std::vector<float> values(kWeights);
  CUDA_TRY(*cuda_, cuMemcpyDtoH_v2, values.data(), weights_, kWeights * sizeof(float));
  return values;
}

}  // namespace gantry::workload
