// SPDX-License-Identifier: Apache-2.0
// A library of a driver as machines/drivers/*.yaml name it, and the names that it has on a machine.
#pragma once

#include <string>
#include <string_view>

namespace gantry::sim {

struct DriverLibrary {
  std::string directory, file, soname;
  std::string dev_link;  // "libcuda.so"; "" for a module such as nvidia_drv.so
  bool in_cache = true;  // of the dynamic loader
};

// "libcuda.so.1", "libnvidia-tls.so", "libnvidia-egl-gbm.so.1=1.1.2", "vdpau/libvdpau_nvidia.so.1",
// "/usr/lib/xorg/modules/drivers/nvidia_drv.so"
DriverLibrary driver_library(std::string_view spec, const std::string& directory,
                             const std::string& version);

}  // namespace gantry::sim
