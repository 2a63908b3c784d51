// SPDX-License-Identifier: Apache-2.0
// Entry points for modules and, since CUDA 12, libraries.
#include "sim/libcuda/context.hpp"
#include "sim/libcuda/entries.hpp"
#include "sim/libcuda/modules.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace gantry::sim::cuda {
namespace {

constexpr size_t kMaxImageBytes = 1U << 30U;

CUresult load(const void* image, Context* context, bool library, Module*& module) {
  module = make<Module>(context);
  if (module == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  module->library = library;
  const CUresult result =
      read_image(image, context == nullptr ? nullptr : context->device, *module);
  if (result != CUDA_SUCCESS) unload(*module);
  return result;
}

CUresult load_module(CUmodule* module, const void* image) {
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  if (const CUresult result = working_context(context); result != CUDA_SUCCESS) return result;
  Module* made = nullptr;
  const CUresult result = load(image, context, false, made);
  if (result == CUDA_SUCCESS) *module = handle_of<CUmodule>(made);
  return result;
}

// The whole file with a NUL after it; nullptr when it cannot be read. The caller frees.
char* read_file(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  const off_t size = lseek(fd, 0, SEEK_END);
  const bool readable = size >= 0 && static_cast<size_t>(size) < kMaxImageBytes;
  char* text = readable ? static_cast<char*>(calloc(1, static_cast<size_t>(size) + 8)) : nullptr;
  size_t got = 0;
  while (text != nullptr && got < static_cast<size_t>(size)) {
    const ssize_t piece =
        pread(fd, text + got, static_cast<size_t>(size) - got, static_cast<off_t>(got));
    if (piece <= 0) break;
    got += static_cast<size_t>(piece);
  }
  close(fd);
  return text;
}

CUresult take_function(Module* module, const char* name, Function*& function) {
  if (name == nullptr || *name == '\0') return CUDA_ERROR_INVALID_VALUE;
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return function_of(*module, name, function);
}

// Fills `out` with the named kernels of a module, as many as fit.
template <class Handle>
CUresult enumerate(Module* module, Handle* out, unsigned count) {
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const char* name = module->names;
  for (unsigned i = 0; i < count && i < module->name_count; ++i) {
    Function* function = nullptr;
    if (const CUresult result = function_of(*module, name, function); result != CUDA_SUCCESS)
      return result;
    out[i] = handle_of<Handle>(function);
    name += strlen(name) + 1;
  }
  return CUDA_SUCCESS;
}

Module* library_of(CUlibrary handle) {
  Module* module = find<Module>(handle);
  return module != nullptr && module->library ? module : nullptr;
}

}  // namespace

namespace entry {

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return load_module(module, image);
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, CUjit_option*,
                            void**) {
  return load_module(module, image);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fat_cubin) {
  return load_module(module, fat_cubin);
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  if (module == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  char* image = read_file(path);
  if (image == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  const CUresult result = load_module(module, image);
  free(image);
  return result;
}

CUresult cuModuleUnload(CUmodule module) {
  Module* known = find<Module>(module);
  if (known == nullptr || known->library) return CUDA_ERROR_INVALID_HANDLE;
  unload(*known);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const char* wanted = getenv("CUDA_MODULE_LOADING");
  *mode = wanted != nullptr && strcmp(wanted, "EAGER") == 0 ? CU_MODULE_EAGER_LOADING
                                                            : CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function* found = nullptr;
  const CUresult result = take_function(find<Module>(module), name, found);
  if (result == CUDA_SUCCESS) *function = handle_of<CUfunction>(found);
  return result;
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod) {
  const Module* module = find<Module>(mod);
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *count = module->name_count;
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int num_functions,
                                    CUmodule mod) {
  return enumerate(find<Module>(mod), functions, num_functions);
}

// Variables of a module are not simulated: none is ever found.
CUresult cuModuleGetGlobal_v2(CUdeviceptr*, size_t*, CUmodule module, const char* name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return find<Module>(module) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_NOT_FOUND;
}
CUresult cuModuleGetGlobal(CUdeviceptr_v1*, unsigned int*, CUmodule module, const char* name) {
  return entry::cuModuleGetGlobal_v2(nullptr, nullptr, module, name);
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                           unsigned int, CUlibraryOption*, void**, unsigned int) {
  if (library == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* made = nullptr;
  const CUresult result = load(code, nullptr, true, made);
  if (result == CUDA_SUCCESS) *library = handle_of<CUlibrary>(made);
  return result;
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file_name, CUjit_option*, void**,
                               unsigned int, CUlibraryOption*, void**, unsigned int) {
  if (library == nullptr || file_name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  char* image = read_file(file_name);
  if (image == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  const CUresult result =
      entry::cuLibraryLoadData(library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  free(image);
  return result;
}

CUresult cuLibraryUnload(CUlibrary library) {
  Module* known = library_of(library);
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  unload(*known);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Function* found = nullptr;
  const CUresult result = take_function(library_of(library), name, found);
  if (result == CUDA_SUCCESS) *kernel = handle_of<CUkernel>(found);
  return result;
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib) {
  const Module* known = library_of(lib);
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *count = known->name_count;
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int num_kernels, CUlibrary lib) {
  return enumerate(library_of(lib), kernels, num_kernels);
}

CUresult cuLibraryGetModule(CUmodule* mod, CUlibrary library) {
  Module* known = library_of(library);
  if (mod == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *mod = handle_of<CUmodule>(known);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr*, size_t*, CUlibrary library, const char* name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return library_of(library) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_NOT_FOUND;
}

// A kernel and its function in a context are the same object here.
CUresult cuKernelGetFunction(CUfunction* func, CUkernel kernel) {
  Function* known = find<Function>(kernel);
  if (func == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *func = handle_of<CUfunction>(known);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary* lib, CUkernel kernel) {
  const Function* known = find<Function>(kernel);
  if (lib == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *lib = handle_of<CUlibrary>(known->module);
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
