// SPDX-License-Identifier: Apache-2.0
#include "notebook/list_gpus.hpp"

#include "workload/context.hpp"

#include <fmt/format.h>

namespace gantry::workload {
namespace {

Result<std::string> line_of(const Cuda& cuda, int ordinal) {
  CUdevice device = 0;
  char name[256] = "";
  char bus[32] = "";
  int major = 0;
  int minor = 0;
  std::size_t bytes = 0;
  CUDA_TRY(cuda, cuDeviceGet, &device, ordinal);
  CUDA_TRY(cuda, cuDeviceGetName, name, sizeof name, device);
  CUDA_TRY(cuda, cuDeviceGetPCIBusId, bus, sizeof bus, device);
  CUDA_TRY(cuda, cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
           device);
  CUDA_TRY(cuda, cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
           device);
  CUDA_TRY(cuda, cuDeviceTotalMem_v2, &bytes, device);
  return fmt::format("GPU {}: {}, {} MiB, compute capability {}.{}, {}", ordinal, name,
                     bytes >> 20U, major, minor, bus);
}

Status list_gpus(const Options& options, std::FILE* out) {
  GANTRY_TRY(const Cuda cuda, open_cuda(options.library));
  CUDA_TRY(cuda, cuInit, 0);
  int count = 0;
  CUDA_TRY(cuda, cuDeviceGetCount, &count);
  if (count == 0) return cuda.check(CUDA_ERROR_NO_DEVICE, "cuDeviceGetCount");
  for (int i = 0; i < count; ++i) {
    GANTRY_TRY(const std::string line, line_of(cuda, i));
    fmt::print(out, "{}\n", line);
  }
  return {};
}

}  // namespace

int look(const Options& options, std::FILE* out, std::FILE* err) {
  const Status status = list_gpus(options, out);
  std::fflush(out);
  if (status.ok()) return 0;
  print_error(err, options.called.empty() ? "gantry-notebook" : options.called, status.error());
  return 1;
}

}  // namespace gantry::workload
