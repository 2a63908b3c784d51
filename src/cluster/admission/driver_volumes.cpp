// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "cluster/admission/containers_internal.hpp"

#include <fmt/format.h>

#include <set>

namespace gantry::admission {
namespace {

constexpr std::size_t kPathLimit = 4096;

// "/usr//lib/./nvidia-384/" becomes "/usr/lib/nvidia-384". Paths with ".." are not handled: the API
// server rejects them.
std::string tidy(std::string_view path) {
  std::string out;
  for (const auto piece : split(path, '/')) {
    if (piece.empty() || piece == ".") continue;
    out += '/';
    out += piece;
  }
  return out;
}

bool is_or_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// "nvidia", "nvidia-384", "nvidia-384-prime", "nvidia-current": names of the driver's library
// directory in distributions. Not nvidia-container-toolkit and similar.
bool is_driver_folder(std::string_view name) {
  if (name == "nvidia" || name == "nvidia-current") return true;
  constexpr std::string_view kPrefix = "nvidia-";
  return name.starts_with(kPrefix) && name.size() > kPrefix.size() && name[kPrefix.size()] >= '0' &&
         name[kPrefix.size()] <= '9';
}

bool is_driver_library(std::string_view name) {
  if (!contains(name, ".so")) return false;
  for (const std::string_view prefix :
       {"libcuda.so", "libnvidia-", "libnvcuvid.so", "libcudadebugger.so"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

bool is_driver_program(std::string_view name) {
  return name == "nvidia-smi" || name == "nvidia-debugdump" || name == "nvidia-persistenced" ||
         name == "nvidia-cuda-mps-control" || name == "nvidia-cuda-mps-server";
}

}  // namespace

bool is_driver_path(std::string_view path) {
  if (path.size() > kPathLimit) return false;
  const auto whole = tidy(path);
  for (const std::string_view folder : {"/usr/local/nvidia", "/home/kubernetes/bin/nvidia",
                                        "/var/lib/nvidia-docker/volumes", "/opt/nvidia-driver"}) {
    if (is_or_below(whole, folder)) return true;
  }
  const auto name = std::string_view(whole).substr(whole.rfind('/') + 1);
  for (const std::string_view folder :
       {"/usr/lib/", "/usr/lib32/", "/usr/lib64/", "/lib/", "/lib64/"}) {
    if (!whole.starts_with(folder)) continue;
    const auto below = std::string_view(whole).substr(folder.size());
    return is_driver_folder(below.substr(0, below.find('/'))) || is_driver_library(name) ||
           (is_driver_folder(name) && is_or_below(below, "x86_64-linux-gnu"));
  }
  const bool in_bin = is_or_below(whole, "/usr/bin") || is_or_below(whole, "/usr/local/bin");
  return in_bin && is_driver_program(name);
}

void remove_driver_volumes(const json::Value& pod, PodDraft& draft) {
  std::set<std::string> dropped;
  std::size_t number = 0;
  const auto volumes = pod["spec"]["volumes"];
  if (!volumes.is(json::Kind::Array)) return;
  for (const auto volume : volumes) {
    const auto at = number++;
    const auto path = volume["hostPath"]["path"].string();
    const auto name = volume["name"].string();
    if (!path || !name || !is_driver_path(*path) || !dropped.insert(*name).second) continue;
    draft.edits.remove({"spec", "volumes", at});
    draft.warnings.push_back(
        fmt::format("volume \"{}\" ({}) is removed: the node provides its own driver",
                    printable(name->substr(0, 64)), printable(path->substr(0, 100))));
  }
  if (dropped.empty()) return;
  for (const auto& place : containers_of(pod)) {
    const auto mounts = place.container["volumeMounts"];
    if (!mounts.is(json::Kind::Array)) continue;
    std::size_t mount_number = 0;
    for (const auto mount : mounts) {
      const auto at = mount_number++;
      if (dropped.count(mount["name"].string().value_or("")) == 0) continue;
      auto path = place.path();
      path.emplace_back("volumeMounts");
      path.emplace_back(at);
      draft.edits.remove(std::move(path));
    }
  }
}

}  // namespace gantry::admission
