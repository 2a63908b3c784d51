// SPDX-License-Identifier: Apache-2.0
// What CUDA needs of an image: a loader, its runtime library with its version, the libraries that
// frameworks load; and what is in its way: a libcuda of its own, an old package for forward
// compatibility.
#pragma once

#include "container/image/root_files.hpp"
#include "container/rootfs/loader_config.hpp"
#include "gpu/loader/forward_compat.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gantry::image {

// The dynamic loaders of the image.
rootfs::Loaders find_loaders(const RootFiles& files);

struct CudaRuntime {
  std::string path;     // of libcudart, or of the directory that contains it
  std::string version;  // "12.4.127", or as much of it as file names say: "12"
};

// Each libcudart where the loader or a framework looks, with the newest first.
std::vector<CudaRuntime> find_cuda_runtimes(const RootFiles& files,
                                            std::span<const std::string> env,
                                            std::span<const std::string> python_directories);

// A library whose file name begins so ("libcublas.so") is where the loader or a framework looks.
bool has_library(const RootFiles& files, std::span<const std::string> env,
                 std::span<const std::string> python_directories, std::string_view name);

struct OwnLibcuda {
  std::string path;     // "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
  std::string version;  // "550.54.14"; "" if file names do not say it
  std::uint64_t size = 0;
  bool in_library_path = false;  // LD_LIBRARY_PATH names its directory, so it always comes first
};

// The driver's library, which belongs to the machine, not to an image. Not that of the package for
// forward compatibility, unless LD_LIBRARY_PATH names it.
std::optional<OwnLibcuda> find_own_libcuda(const RootFiles& files,
                                           std::span<const std::string> env);

struct CompatPackage {
  std::string version;       // of the driver that it is a part of: "575.57.08"
  std::string cuda_version;  // "12.9"; "" if its note does not say it
  loader::CompatDecision decision;
};

// nullopt if the image has no libcuda for forward compatibility.
std::optional<CompatPackage> find_compat(const RootFiles& files, const loader::HostVersions& host);

}  // namespace gantry::image
