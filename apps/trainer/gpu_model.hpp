// SPDX-License-Identifier: Apache-2.0
// The model, its pictures and its weights in a GPU's memory.
#pragma once

#include "trainer/digits.hpp"
#include "workload/cuda.hpp"

namespace gantry::workload {

// Pictures and labels in GPU memory, with space for their scores.
struct GpuDigits {
  CUdeviceptr pixels = 0;
  CUdeviceptr labels = 0;
  CUdeviceptr scores = 0;
  std::size_t count = 0;
};

// Belongs to the current context, which frees its memory when it ends.
class GpuModel {
 public:
  // The initial weights are 0.
  static Result<GpuModel> make(const Cuda& cuda);

  Result<GpuDigits> upload(const Digits& digits) const;
  // One step of gradient descent on `count` pictures, starting at `first`.
  Status step(const GpuDigits& digits, std::size_t first, std::size_t count, float rate) const;
  // Returns the class with the highest score for each picture.
  Result<std::vector<std::uint32_t>> predict(const GpuDigits& digits) const;
  Result<std::vector<float>> weights() const;

 private:
  explicit GpuModel(const Cuda& cuda) : cuda_(&cuda) {}
  Status launch(CUfunction function, std::size_t threads, void** arguments) const;
  Status score(const GpuDigits& digits, CUdeviceptr pixels, std::size_t count) const;

  const Cuda* cuda_;
  CUfunction forward_ = nullptr;
  CUfunction gradient_ = nullptr;
  CUfunction update_ = nullptr;
  CUfunction predict_ = nullptr;
  CUdeviceptr weights_ = 0;
};

}  // namespace gantry::workload
