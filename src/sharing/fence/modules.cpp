// SPDX-License-Identifier: Apache-2.0
// Hooks of the functions that load code: it uses GPU memory that only the host can measure.
#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gpus.hpp"
#include "sharing/fence/overhead.hpp"

namespace gantry::fence {
namespace {

CUresult loaded(CUresult result) {
  if (result == CUDA_SUCCESS && attached()) overhead_changed(current_gpu());
  return result;
}

}  // namespace
}  // namespace gantry::fence

using namespace gantry::fence;

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return loaded(real().cuModuleLoad(module, path));
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return loaded(real().cuModuleLoadData(module, image));
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int num_options,
                            CUjit_option* options, void** option_values) {
  return loaded(real().cuModuleLoadDataEx(module, image, num_options, options, option_values));
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fat_cubin) {
  return loaded(real().cuModuleLoadFatBinary(module, fat_cubin));
}
CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_options,
                           void** jit_options_values, unsigned int num_jit_options,
                           CUlibraryOption* library_options, void** library_option_values,
                           unsigned int num_library_options) {
  return loaded(real().cuLibraryLoadData(library, code, jit_options, jit_options_values,
                                         num_jit_options, library_options, library_option_values,
                                         num_library_options));
}
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file_name, CUjit_option* jit_options,
                               void** jit_options_values, unsigned int num_jit_options,
                               CUlibraryOption* library_options, void** library_option_values,
                               unsigned int num_library_options) {
  return loaded(real().cuLibraryLoadFromFile(library, file_name, jit_options, jit_options_values,
                                             num_jit_options, library_options,
                                             library_option_values, num_library_options));
}
