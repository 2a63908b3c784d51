// SPDX-License-Identifier: Apache-2.0
// Where the driver's files are, on the host and in a container. The prepared directory
//
//   /var/lib/gantry/driver/580.159.04-1f2e3d4c5b6a7988/
//     lib64/  lib/  bin/              everything, under file name, SONAME and development name
//     sets/compute+utility/lib64/     what a container with these capabilities gets
//     config/etc/OpenCL/vendors/...   OpenCL's, Vulkan's and EGL's files, by their place in a
//     container manifest.json
//   /var/lib/gantry/driver/current -> 580.159.04-1f2e3d4c5b6a7988
//
// is written by src/container/driver_dir and mounted by what src/container/plan decides; both take
// the names from here.
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
inline constexpr std::string_view kContainerSmi = "/usr/bin/nvidia-smi";
inline constexpr std::string_view kLoaderConfPath = "/etc/ld.so.conf.d/00-gantry.conf";

// Subdirectories that the loader looks into by itself: the first since glibc 2.33, the second
// before 2.37; below the library directory of either layout.
std::vector<std::string> loader_directories();

// The name of a set below sets/: the closed capabilities in fixed order, "compute+utility".
// Display's few libraries are in the sets that have graphics. "" when nothing of it has libraries.
std::string library_set_name(model::CapabilityMask closed);

struct LibrarySet {
  std::string name;
  model::CapabilityMask closed = 0;  // with Display where it has Graphics; without Compat32
};
std::vector<LibrarySet> library_sets();  // the 23 that differ, smallest first

// Where programs look for a configuration file, in a container: "/etc/OpenCL/vendors/nvidia.icd".
std::string config_path_in_container(const model::DriverFile& file);

// A program's name: the one it was found under, where that leads elsewhere (Debian's alternatives).
std::string program_name(const model::DriverFile& program);

// Names a library has in its directory of the prepared directory: its own, its SONAME, the
// development link; "vdpau/libvdpau_nvidia.so.1" for one in a subdirectory, which has its names in
// the directory itself, too (libvdpau and the loader look there). First the one to link the others
// to.
std::vector<std::string> names_in_directory(const model::DriverFile& library);

}  // namespace gantry::plan
