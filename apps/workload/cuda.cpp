// SPDX-License-Identifier: Apache-2.0
#include "workload/cuda.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace gantry::workload {
namespace {

struct Advice {
  CUresult result;
  const char* cause;
  const char* remedy;
};

constexpr Advice kAdvice[] = {
    {CUDA_ERROR_NO_DEVICE,
     "this process cannot use any GPU: the driver is not loaded, /dev/nvidia* does not exist or "
     "cannot be opened, or CUDA_VISIBLE_DEVICES hides every GPU",
     "gantry doctor, or: ls -l /dev/nvidia*; cat /proc/driver/nvidia/version; echo "
     "$CUDA_VISIBLE_DEVICES"},
    {CUDA_ERROR_INVALID_DEVICE, "there is no device with this number",
     "gantry-device-query lists the devices"},
    {CUDA_ERROR_OUT_OF_MEMORY, "other processes use the GPU's memory, or a limit is set",
     "nvidia-smi shows both; for a share, run on its host: gantry share top"},
    {CUDA_ERROR_STUB_LIBRARY, "the toolkit's stub was loaded in place of the driver's library",
     "remove the stubs directory from LD_LIBRARY_PATH"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE,
     "another process uses the GPU exclusively (compute mode), or the GPU must be reset",
     "gantry doctor, or: nvidia-smi -q -d COMPUTE; dmesg | grep -i xid; then nvidia-smi -c DEFAULT "
     "or nvidia-smi --gpu-reset"},
    {CUDA_ERROR_SYSTEM_NOT_READY,
     "the fabric manager of this NVSwitch machine is not running, or this is a share and the share "
     "daemon cannot be reached",
     "systemctl start nvidia-fabricmanager; for a share, run on its host: gantry share ls"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
     "libcuda and the loaded kernel module come from different driver versions",
     "reboot, or reload the module: modprobe -r nvidia_uvm nvidia_modeset nvidia && modprobe "
     "nvidia"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
     "a forward-compatibility libcuda was found first, and this GPU does not support it",
     "remove /usr/local/cuda/compat from LD_LIBRARY_PATH"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "the driver cannot compile for this GPU", "gantry-device-query"},
    {CUDA_ERROR_INVALID_PTX, "the driver does not accept the program's PTX for this GPU",
     "gantry-device-query"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the driver is older than the program's PTX",
     "update the driver"},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
     "libnvidia-ptxjitcompiler.so.1 is not in the directory of libcuda",
     "mount the driver's compute libraries into the container: gantry list"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel touched memory it does not own", "dmesg | grep -i xid"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, "the GPU's memory has an uncorrectable error",
     "nvidia-smi -q -d ECC, then reset the GPU: nvidia-smi --gpu-reset"},
    {CUDA_ERROR_UNKNOWN,
     "the GPU may have fallen off the bus, or /dev/nvidia-uvm is missing or from an earlier boot",
     "dmesg | grep -iE 'nvrm|xid'; nvidia-modprobe -u -c 0; gantry doctor"},
};

const Advice* advice_for(CUresult result) {
  for (const Advice& advice : kAdvice) {
    if (advice.result == result) return &advice;
  }
  return nullptr;
}

// Directories of libcuda if the loader does not find it by name.
constexpr const char* kDriverDirectories[] = {
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib64/libcuda.so.1",
    "/run/opengl-driver/lib/libcuda.so.1",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/home/kubernetes/bin/nvidia/lib64/libcuda.so.1",
};

std::string loader_error() {
  const char* text = ::dlerror();
  return text == nullptr ? "unknown error" : text;
}

void* open_library(const std::string& wanted, std::string& opened, std::string& why) {
  opened = wanted.empty() ? "libcuda.so.1" : wanted;
  void* handle = ::dlopen(opened.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  why = loader_error();
  if (!wanted.empty()) return nullptr;
  for (const char* path : kDriverDirectories) {
    if (::access(path, R_OK) != 0) continue;
    opened = path;
    handle = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return handle;
    why = loader_error();
  }
  return nullptr;
}

template <class Function>
bool resolve(void* handle, const char* symbol, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(::dlsym(handle, symbol));
  if (function == nullptr && missing.empty()) missing = symbol;
  return function != nullptr;
}

}  // namespace

std::string Cuda::describe(CUresult result, const char* call) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown CUDA error";
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr)
    text = "the driver has no text for it";
  return fmt::format("{}: {} ({}, {})", call, text, name, static_cast<int>(result));
}

Status Cuda::check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return {};
  auto message = describe(result, call);
  if (const Advice* advice = advice_for(result); advice != nullptr)
    message += fmt::format("\n  cause: {}\n  remedy: {}", advice->cause, advice->remedy);
  return Error(result == CUDA_ERROR_NO_DEVICE ? Errc::NotFound : Errc::Internal, message);
}

Status Cuda::check_allocation(CUresult result, const char* call, std::uint64_t mib) const {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  if (result != CUDA_ERROR_OUT_OF_MEMORY ||
      cuMemGetInfo_v2(&free_bytes, &total_bytes) != CUDA_SUCCESS) {
    return check(result, call);
  }
  const auto total = total_bytes >> 20U;
  const auto cause =
      mib > total ? fmt::format(
                        "{} MiB are more than the {} MiB that the card, or this program's share of "
                        "it, has\n  remedy: ask for less; for a share, run on its host: gantry "
                        "share ls",
                        mib, total)
                  : fmt::format(
                        "{} MiB are more than the {} MiB that are free: other processes use the "
                        "rest of {} MiB\n  remedy: nvidia-smi shows them; for a share, run on its "
                        "host: gantry share top",
                        mib, free_bytes >> 20U, total);
  return Error(Errc::Internal, fmt::format("{}\n  cause: {}", describe(result, call), cause));
}

Result<Cuda> open_cuda(const std::string& library) {
  Cuda cuda;
  std::string why;
  void* handle = open_library(library, cuda.library, why);
  if (handle == nullptr) {
    return Error(
        Errc::NotFound,
        fmt::format("the CUDA driver library cannot be loaded: {}\n"
                    "  cause: no NVIDIA driver is installed here, or its libraries are not mounted "
                    "into this container\n"
                    "  remedy: gantry doctor; gantry list; or name the library: --library FILE",
                    why));
  }
  std::string missing;
#define CALL(symbol) resolve(handle, #symbol, cuda.symbol, missing);
#include "workload/cuda_calls.def"
  if (!missing.empty()) {
    return Error(
        Errc::Unsupported,
        fmt::format(
            "{} has no {}\n  cause: it is not the driver's libcuda, or one from before CUDA 6\n"
            "  remedy: name the right one with --library FILE",
            cuda.library, missing));
  }
  return cuda;
}

}  // namespace gantry::workload
