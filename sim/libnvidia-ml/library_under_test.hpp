// SPDX-License-Identifier: Apache-2.0
// For tests: the built libnvidia-ml.so with a machine at its end, loaded from its own tree.
#pragma once

#include "gpu/abi/nvml.h"
#include "sim/machine/image.hpp"
#include "support/tree.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace gantry::sim {

class LoadedLibrary {
 public:
  // `edit` may change the machine before it is written; `edit_file` the bytes of the finished file.
  using Edit = std::function<void(gantry_sim_image&)>;
  using EditFile = std::function<void(std::string&)>;
  explicit LoadedLibrary(const std::string& machine = "h200x8", const Edit& edit = {},
                         const EditFile& edit_file = {});
  ~LoadedLibrary();
  LoadedLibrary(const LoadedLibrary&) = delete;
  LoadedLibrary& operator=(const LoadedLibrary&) = delete;

  // A function by its own name and type: library.get<decltype(nvmlInit_v2)>("nvmlInit_v2").
  template <typename Function>
  Function* get(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }
  void* symbol(const char* name) const;

  // Does what `gantry sim inject` does: changes the state in the file while processes have it
  // mapped.
  void change(const std::function<void(gantry_sim_state&)>& edit) const;
  void event(std::uint32_t gpu, std::uint32_t type, std::uint64_t data) const;

  // A dev.table with the GPUs' nodes and these of /dev/nvidia-caps.
  std::string nodes(const std::vector<unsigned int>& capabilities) const;

  test::Tree tree;
  std::string file;

 private:
  void* handle_ = nullptr;
  std::string gpu_nodes_;
  std::uint32_t caps_major_ = 0;
};

}  // namespace gantry::sim

// NVML(library, nvmlDeviceGetCount_v2)(&count)
#define NVML(library, function) (library).get<decltype(::function)>(#function)
