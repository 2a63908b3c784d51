// SPDX-License-Identifier: Apache-2.0
// Paths of the driver's files on the host and in a container. The prepared directory
//
//   /var/lib/gantry/driver/580.159.04-1f2e3d4c5b6a7988/
//     lib64/  lib/  bin/              all files, by file name, SONAME and development name
//     sets/compute+utility/lib64/     the libraries for containers with these capabilities
//     config/etc/OpenCL/vendors/...   files of OpenCL, Vulkan and EGL, by their path in a container
//     manifest.json
//   /var/lib/gantry/driver/current -> 580.159.04-1f2e3d4c5b6a7988
//
// is written by src/container/driver_dir and mounted as src/container/plan decides; both take the
// names from this file.
#pragma once

#include "gpu/model/capabilities.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::plan {

// On the host, inside its root.
inline constexpr std::string_view kDriverDirectories = "/var/lib/gantry/driver";
inline constexpr std::string_view kCurrentDriverLink = "/var/lib/gantry/driver/current";
inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kConfigName = "config";

// In the container.
inline constexpr std::string_view kContainerLibraryDirectory = "/usr/local/nvidia/lib64";
inline constexpr std::string_view kContainerLibraryDirectory32 = "/usr/local/nvidia/lib";
inline constexpr std::string_view kContainerProgramDirectory = "/usr/local/nvidia/bin";
inline constexpr std::string_view kContainerPath = "/usr/bin";  // in the PATH of every image
inline constexpr std::string_view kLoaderConfPath = "/etc/ld.so.conf.d/00-gantry.conf";

// Subdirectories that the loader searches by default, below the library directory of either layout:
// the first since glibc 2.33, the second before 2.37.
std::vector<std::string> loader_directories();

// Where libgbm looks for NVIDIA's back end in a container, in either layout.
std::vector<std::string> gbm_backends();

// The name of a set below sets/: the closed capabilities in fixed order, "compute+utility". The few
// libraries of Display are in the sets that have Graphics. "" if these capabilities have no
// libraries.
std::string library_set_name(model::CapabilityMask closed);

struct LibrarySet {
  std::string name;
  model::CapabilityMask closed = 0;  // with Display if it has Graphics; without Compat32
};
std::vector<LibrarySet> library_sets();  // the 23 that differ, smallest first

// The path of a configuration file in a container: "/etc/OpenCL/vendors/nvidia.icd".
std::string config_path_in_container(const model::DriverFile& file);

// The name of a program: the name of the link if it was found through one (Debian's alternatives).
std::string program_name(const model::DriverFile& program);

// The names of a library in the prepared directory: file name, SONAME, development link, and names
// that programs expect although the driver's package may not have them. A library
// in a subdirectory ("vdpau/libvdpau_nvidia.so.1") has its names in the directory itself, too,
// because libvdpau and the loader search there. The other names are links to the first one.
std::vector<std::string> names_in_directory(const model::DriverFile& library);

}  // namespace gantry::plan
