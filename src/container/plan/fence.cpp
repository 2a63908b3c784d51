// SPDX-License-Identifier: Apache-2.0
#include "container/plan/fence.hpp"

#include "container/plan/edits_internal.hpp"
#include "gpu/abi/fence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::plan {
namespace {

constexpr std::string_view kCuda = "libcuda.so.1";
constexpr std::string_view kNvml = "libnvidia-ml.so.1";

bool has_library(const model::Inventory& machine, std::string_view soname) {
  return std::any_of(machine.files.begin(), machine.files.end(), [&](const auto& file) {
    return file.kind == model::DriverFileKind::Library && file.soname == soname && !file.is_32bit;
  });
}

// The mounted directories with the driver's libraries.
std::vector<model::MountEdit> library_directories(const model::ContainerEdits& edits) {
  const auto places = loader_directories();
  std::vector<model::MountEdit> found;
  for (const auto& mount : edits.mounts) {
    const auto& place = mount.container_path;
    if (place == kContainerLibraryDirectory ||
        std::find(places.begin(), places.end(), place) != places.end())
      found.push_back(mount);
  }
  return found;
}

// Mounts over the SONAME, which is a link in that directory: the mount covers the link's target,
// and no version is stored.
void cover(const std::vector<model::MountEdit>& directories, std::string_view soname,
           const std::string& ours, model::ContainerEdits& edits) {
  for (const auto& directory : directories) {
    edits.mounts.push_back(
        {.host_path = ours,
         .container_path = fmt::format("{}/{}", directory.container_path, soname),
         .why = "the fence in front of it"});
  }
}

}  // namespace

Status add_fence(const model::Inventory& machine, const PlanOptions& options,
                 const FenceOptions& fence, model::ContainerEdits& edits) {
  if (!has_library(machine, kCuda)) {
    return Error(Errc::NotFound,
                 "the driver has no libcuda.so.1 here, so limits cannot be enforced; run `gantry "
                 "doctor`");
  }
  const auto directories = library_directories(edits);
  if (directories.empty()) {
    return Error(Errc::Invalid,
                 "a share needs the driver's libraries: request the capability compute");
  }
  const auto& from = directories.front().host_path;
  edits.mounts.push_back({.host_path = engine_path(options, fence.directory),
                          .container_path = FENCE_DIRECTORY,
                          .why = fmt::format("the share {}", fence.share)});
  const auto put = [&](std::string_view soname, const char* place, const std::string& ours) {
    edits.mounts.push_back({.host_path = fmt::format("{}/{}", from, soname),
                            .container_path = place,
                            .why = "the driver's own, for the fence"});
    cover(directories, soname, ours, edits);
  };
  put(kCuda, FENCE_REAL_CUDA, fence.cuda_library);
  if (has_library(machine, kNvml)) put(kNvml, FENCE_REAL_NVML, fence.nvml_library);
  model::HookEdit hook{.stage = "createContainer",
                       .path = options.hook_path,
                       .args = {"nvidia-cdi-hook", "fence", "--share", fence.share, "--cuda",
                                fence.cuda_library, "--nvml", fence.nvml_library},
                       .env = {"NVIDIA_CTK_DEBUG=false"},
                       .why =
                           "the fence covers the image's own libcuda, if it has one, and the share "
                           "daemon registers the container"};
  if (!options.engine_root.empty())
    hook.args.insert(hook.args.end(), {"--root", options.engine_root});
  edits.hooks.push_back(std::move(hook));
  return {};
}

}  // namespace gantry::plan
