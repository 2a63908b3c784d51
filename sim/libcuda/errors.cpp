// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/entries.hpp"

namespace gantry::sim::cuda {
namespace {

struct ErrorRow {
  int value;
  const char* name;
  const char* text;
};

constexpr ErrorRow kRows[] = {
#define CUDA_RESULT(name, value, text) {value, #name, text},
#include "gpu/abi/cuda_results.def"
};

const ErrorRow* row_of(CUresult error) {
  for (const ErrorRow& row : kRows) {
    if (row.value == static_cast<int>(error)) return &row;
  }
  return nullptr;
}

}  // namespace

namespace entry {

CUresult cuGetErrorName(CUresult error, const char** str) {
  if (str == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorRow* row = row_of(error);
  *str = row == nullptr ? nullptr : row->name;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** str) {
  if (str == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorRow* row = row_of(error);
  *str = row == nullptr ? nullptr : row->text;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
