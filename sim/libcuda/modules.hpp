// SPDX-License-Identifier: Apache-2.0
// Modules: the content of an image and its functions.
#pragma once

#include "sim/libcuda/driver.hpp"

namespace gantry::sim::cuda {

// Fills a module from the program's image: PTX text, a cubin or a fat binary.
CUresult read_image(const void* image, const Device* device, Module& module);

// The highest PTX version (10 * major + minor) that a driver of this CUDA version accepts.
int newest_ptx(int cuda_version);

CUresult function_of(Module& module, const char* name, Function*& function);
void unload(Module& module);

}  // namespace gantry::sim::cuda
