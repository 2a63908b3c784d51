// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/injection/find_bundle.hpp"

#include "base/core/text.hpp"
#include "base/json/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <vector>

namespace gantry::runtime {
namespace {

constexpr std::size_t kMostEntries = 4096;
constexpr std::size_t kFileLimit = std::size_t{4} << 20;

// Directories that contain bundles: DIRECTORY/ID/REST/config.json. A star is one directory level.
struct BundleLocation {
  std::string_view directory;
  std::string_view rest;
};
constexpr std::array kBundleLocations{
    BundleLocation{"/run/containerd/io.containerd.runtime.v2.task/*", ""},
    BundleLocation{"/run/docker/containerd/daemon/io.containerd.runtime.v2.task/*", ""},
    BundleLocation{"/run/k3s/containerd/io.containerd.runtime.v2.task/*", ""},
    BundleLocation{"/var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task/*", ""},
    BundleLocation{"/run/containers/storage/overlay-containers", "/userdata"},
    BundleLocation{"/var/lib/containers/storage/overlay-containers", "/userdata"},
    BundleLocation{"/run/containers/storage/vfs-containers", "/userdata"},
    BundleLocation{"/var/lib/containers/storage/vfs-containers", "/userdata"},
};

// State files in which low-level runtimes record a container's bundle.
struct StateLocation {
  std::string_view directory;
  std::string_view file;
};
constexpr std::array kStateLocations{
    StateLocation{"/run/runc", "state.json"},
    StateLocation{"/run/containerd/runc/*", "state.json"},
    StateLocation{"/run/docker/runtime-runc/*", "state.json"},
    StateLocation{"/run/docker/runtime-nvidia/*", "state.json"},
    StateLocation{"/run/crun", "status"},
};

std::vector<std::string> entries(const sys::Host& host, const std::string& directory) {
  auto names = host.list(directory);
  if (!names.ok() || names->size() > kMostEntries) return {};
  return *std::move(names);
}

// The directories that match a pattern with at most one star at its end.
std::vector<std::string> directories(const sys::Host& host, std::string_view pattern) {
  if (!pattern.ends_with("/*")) return {std::string(pattern)};
  const std::string parent(pattern.substr(0, pattern.size() - 2));
  std::vector<std::string> result;
  for (const auto& name : entries(host, parent)) {
    result.push_back(fmt::format("{}/{}", parent, name));
  }
  return result;
}

// runc has it in its labels ("bundle=/path"), crun in a separate field.
std::string bundle_in_state(const std::string& text) {
  const auto state = json::Document::parse(text, json::Encoding::Any);
  if (!state.ok()) return {};
  if (auto bundle = (*state)["bundle"].string()) return *bundle;
  for (const auto& label : (*state)["config"]["labels"].strings()) {
    if (label.starts_with("bundle=")) return label.substr(7);
  }
  return {};
}

class Search {
 public:
  Search(const sys::Host& host, std::string_view name) : host_(host), name_(name) {}

  void by_id(const std::string& wanted) {
    for (const auto& place : kStateLocations) {
      for (const auto& directory : directories(host_, place.directory)) {
        look_at_states(directory, place.file, wanted);
      }
    }
    for (const auto& place : kBundleLocations) {
      for (const auto& directory : directories(host_, place.directory)) {
        look_at_bundles(directory, place.rest, wanted);
      }
    }
  }

  // The ids for names in docker and podman.
  std::vector<std::string> ids_by_name() const {
    std::vector<std::string> ids;
    for (const auto& id : entries(host_, "/var/lib/docker/containers")) {
      const auto config = read(fmt::format("/var/lib/docker/containers/{}/config.v2.json", id));
      if (config && (*config)["Name"].string() == fmt::format("/{}", name_)) ids.push_back(id);
    }
    for (const char* driver : {"overlay", "vfs"}) {
      const auto list =
          read(fmt::format("/var/lib/containers/storage/{}-containers/containers.json", driver));
      if (!list) continue;
      for (const auto container : list->root()) {
        const auto names = container["names"].strings();
        if (std::find(names.begin(), names.end(), name_) == names.end()) continue;
        ids.push_back(container["id"].string().value_or(""));
      }
    }
    return ids;
  }

  Result<FoundBundle> result() const {
    std::set<std::string> ids;
    for (const auto& found : found_) ids.insert(found.id);
    if (ids.size() > 1) {
      return Error(Errc::Invalid, fmt::format("{} container ids start with `{}`: {}", ids.size(),
                                              name_, fmt::join(ids, ", ")));
    }
    if (!found_.empty()) return found_.front();
    std::vector<std::string_view> places;
    places.reserve(kStateLocations.size() + kBundleLocations.size());
    for (const auto& place : kStateLocations) places.push_back(place.directory);
    for (const auto& place : kBundleLocations) places.push_back(place.directory);
    return Error(Errc::NotFound,
                 fmt::format("`{}` is neither a bundle (a directory with config.json) nor a "
                             "container in {}",
                             name_, fmt::join(places, ", ")));
  }

  bool empty() const { return found_.empty(); }

 private:
  std::optional<json::Document> read(const std::string& path) const {
    auto text = host_.read(path, kFileLimit);
    if (!text.ok()) return std::nullopt;
    auto document = json::Document::parse(*std::move(text), json::Encoding::Any);
    if (!document.ok()) return std::nullopt;
    return *std::move(document);
  }

  void look_at_states(const std::string& directory, std::string_view file,
                      const std::string& wanted) {
    for (const auto& id : entries(host_, directory)) {
      if (!id.starts_with(wanted)) continue;
      const auto text = host_.read(fmt::format("{}/{}/{}", directory, id, file), kFileLimit);
      if (!text.ok()) continue;
      if (auto bundle = bundle_in_state(*text); !bundle.empty()) found_.push_back({id, bundle});
    }
  }

  void look_at_bundles(const std::string& directory, std::string_view rest,
                       const std::string& wanted) {
    for (const auto& id : entries(host_, directory)) {
      if (!id.starts_with(wanted)) continue;
      auto bundle = fmt::format("{}/{}{}", directory, id, rest);
      if (host_.exists(bundle + "/config.json")) found_.push_back({id, std::move(bundle)});
    }
  }

  const sys::Host& host_;
  std::string_view name_;
  std::vector<FoundBundle> found_;
};

}  // namespace

Result<FoundBundle> find_bundle(const sys::Host& host, std::string_view name) {
  std::string path(name);
  if (path.ends_with("/config.json")) path.resize(path.size() - 12);
  if (path.find('/') != std::string::npos) {
    if (host.exists(path + "/config.json")) return FoundBundle{.id = {}, .bundle = path};
    return Error(Errc::NotFound, fmt::format("{}/config.json does not exist", path));
  }
  if (name.empty()) return Error(Errc::Invalid, "no container was named");
  Search search(host, name);
  search.by_id(path);
  if (search.empty()) {
    for (const auto& id : search.ids_by_name()) {
      if (!id.empty()) search.by_id(id);
    }
  }
  return search.result();
}

}  // namespace gantry::runtime
