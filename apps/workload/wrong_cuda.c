/* SPDX-License-Identifier: Apache-2.0
 *
 * A libcuda for tests that says yes to everything and computes nothing. */
#include "gpu/abi/cuda.h"

#include <stdlib.h>

CUresult cuInit(unsigned int flags) {
  return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuDriverGetVersion(int* version) {
  return *version = 13000, CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** text) {
  return (void)error, *text = "", CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  return (void)error, *text = "", CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  return *count = 1, CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return *device = ordinal, CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  (void)device;
  if (length > 0) name[0] = '\0';
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  (void)which;
  (void)device;
  return *value = 0, CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return (void)device, *bytes = 0, CUDA_SUCCESS;
}
CUresult cuDeviceGetPCIBusId(char* name, int length, CUdevice device) {
  (void)device;
  if (length > 0) name[0] = '\0';
  return CUDA_SUCCESS;
}
CUresult cuMemGetInfo_v2(size_t* available, size_t* total) {
  return *available = 0, *total = 0, CUDA_SUCCESS;
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice one, CUdevice other) {
  (void)one;
  (void)other;
  return *can = 0, CUDA_SUCCESS;
}
CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  (void)flags;
  (void)device;
  return *context = NULL, CUDA_SUCCESS;
}
CUresult cuCtxDestroy_v2(CUcontext context) {
  return (void)context, CUDA_SUCCESS;
}
CUresult cuCtxSynchronize(void) {
  return CUDA_SUCCESS;
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count,
                            CUjit_option* options, void** values) {
  (void)image;
  (void)count;
  (void)options;
  (void)values;
  return *module = NULL, CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  (void)module;
  (void)name;
  return *function = NULL, CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  return (void)module, CUDA_SUCCESS;
}
CUresult cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  return (void)bytes, *pointer = 512, CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return (void)pointer, CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  (void)to;
  (void)from;
  (void)bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  (void)from;
  for (size_t i = 0; i < bytes; ++i) ((char*)to)[i] = 0;
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared, CUstream stream,
                        void** parameters, void** extra) {
  (void)function;
  (void)grid_x;
  (void)grid_y;
  (void)grid_z;
  (void)block_x;
  (void)block_y;
  (void)block_z;
  (void)shared;
  (void)stream;
  (void)parameters;
  (void)extra;
  return CUDA_SUCCESS;
}
