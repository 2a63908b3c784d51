// SPDX-License-Identifier: Apache-2.0
#include "container/oci/container.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gantry::oci {
namespace {

using json::Kind;
using json::Value;

Status expect(Value value, Kind kind, std::string_view where) {
  if (!value || value.is(Kind::Null) || value.is(kind)) return {};
  return Error(Errc::Corrupt,
               fmt::format("{} is {}, not {}", where, to_string(value.kind()), to_string(kind)));
}

Status expect_shape(const json::Document& config) {
  GANTRY_CHECK(expect(config.root(), Kind::Object, "config.json"));
  for (const auto name : {"process", "root", "linux", "hooks", "annotations"}) {
    GANTRY_CHECK(expect(config[name], Kind::Object, name));
  }
  GANTRY_CHECK(expect(config["mounts"], Kind::Array, "mounts"));
  GANTRY_CHECK(expect(config["process"]["env"], Kind::Array, "process.env"));
  GANTRY_CHECK(expect(config["process"]["user"], Kind::Object, "process.user"));
  GANTRY_CHECK(expect(config["linux"]["devices"], Kind::Array, "linux.devices"));
  GANTRY_CHECK(expect(config["linux"]["resources"], Kind::Object, "linux.resources"));
  return expect(config["linux"]["resources"]["devices"], Kind::Array, "linux.resources.devices");
}

bool has_string(Value array, std::string_view wanted) {
  const auto strings = array.strings();
  return std::find(strings.begin(), strings.end(), wanted) != strings.end();
}

bool has_user_namespace(Value linux) {
  for (const auto space : linux["namespaces"]) {
    if (space["type"].string() == "user") return true;
  }
  return linux["uidMappings"].size() > 0;
}

bool new_user_namespace(Value linux) {
  for (const auto space : linux["namespaces"]) {
    if (space["type"].string() == "user" && !space["path"].string().value_or("").starts_with('/')) {
      return true;
    }
  }
  return linux["uidMappings"].size() > 0;
}

// The keys of containerd and of CRI-O for the same two values.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kPodKeys{{
    {"io.kubernetes.cri.sandbox-uid", "io.kubernetes.cri.container-name"},
    {"io.kubernetes.pod.uid", "io.kubernetes.container.name"},
}};

constexpr std::string_view kPodCgroup = "kubepods";
constexpr std::string_view kManager = "io.container.manager";
constexpr std::string_view kLibpod = "libpod";

// Podman copies the annotations of an image into config.json, so the image may have replaced the
// one that names podman. Its cgroup and its mounts are podman's own, such as
// STORE/overlay-containers/ID/userdata/.containerenv.
bool is_of_podman(const Container& container, std::string_view cgroup) {
  const auto& mounts = container.mounts;
  return container.annotation(kManager) == kLibpod || contains(cgroup, kLibpod) ||
         std::any_of(mounts.begin(), mounts.end(), [](const Mount& mount) {
           return contains(mount.source, "-containers/") && contains(mount.source, "/userdata/");
         });
}

bool is_pod_key(std::string_view key) {
  return key.starts_with("io.kubernetes.cri.") || key.starts_with("io.kubernetes.pod.") ||
         key.starts_with("io.kubernetes.container.");
}

// Podman gives every container a few of CRI-O's keys (Created, TTY), with or without a pod.
bool is_crio_key(std::string_view key) {
  return key.starts_with("io.kubernetes.cri-o.");
}

// An engine that does not name the pod still puts the container below the kubelet's cgroups. The
// pod of such a container has no name, so nothing can be granted to it.
std::optional<PodContainer> pod_of(const Container& container, std::string_view cgroup,
                                   std::span<const std::string> pod_cgroups) {
  std::optional<PodContainer> named;
  for (const auto& [uid, name] : kPodKeys) {
    PodContainer pod{std::string(container.annotation(uid)),
                     std::string(container.annotation(name))};
    if (pod.uid.empty() || pod.container.empty()) continue;
    // An engine writes one pair. If two pairs differ, the pod set one of them to pretend to be
    // another pod.
    if (named && *named != pod) return PodContainer{};
    named = std::move(pod);
  }
  if (named) return named;
  const auto& notes = container.annotations;
  const bool is_podman = container.annotation(kManager) == kLibpod;
  const bool marked = std::any_of(notes.begin(), notes.end(), [&](const auto& note) {
    return is_pod_key(note.first) || (is_crio_key(note.first) && !is_podman);
  });
  const bool below = std::any_of(pod_cgroups.begin(), pod_cgroups.end(), [&](const auto& name) {
    return !name.empty() && contains(cgroup, name);
  });
  if (marked || below || contains(cgroup, kPodCgroup)) return PodContainer{};
  return std::nullopt;
}

}  // namespace

std::string_view variable_name(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

std::optional<std::string_view> Container::variable(std::string_view name) const {
  for (auto entry = env.rbegin(); entry != env.rend(); ++entry) {
    const std::string_view text = *entry;
    if (variable_name(text) != name) continue;
    return text.substr(std::min(text.size(), name.size() + 1));
  }
  return std::nullopt;
}

std::string_view Container::annotation(std::string_view key) const {
  for (const auto& [name, value] : annotations) {
    if (name == key) return value;
  }
  return {};
}

Result<Container> parse_container(const json::Document& config,
                                  std::span<const std::string> pod_cgroups) {
  GANTRY_CHECK(expect_shape(config));
  const auto process = config["process"];
  Container container;
  container.env = process["env"].strings();
  for (const auto note : config["annotations"]) {
    container.annotations.emplace_back(note.key(), note.string().value_or(""));
  }
  for (const auto mount : config["mounts"]) {
    container.mounts.push_back({mount["source"].string().value_or(""),
                                mount["destination"].string().value_or(""),
                                mount["options"].strings()});
  }
  container.root = config["root"]["path"].string().value_or("");
  container.read_only_root = config["root"]["readonly"].boolean().value_or(false);
  container.uid = process["user"]["uid"].u64().value_or(0);
  // In a user namespace, new or joined, the capability is only for that namespace.
  const auto has = [&](std::string_view capability) {
    return has_string(process["capabilities"]["bounding"], capability) &&
           !has_user_namespace(config["linux"]);
  };
  container.privileged = has("CAP_SYS_ADMIN");
  container.can_create_nodes = has("CAP_MKNOD");
  container.user_namespace = new_user_namespace(config["linux"]);
  const auto cgroup = config["linux"]["cgroupsPath"].string().value_or("");
  container.pod = pod_of(container, cgroup, pod_cgroups);
  container.has_annotations_of_image =
      is_of_podman(container, cgroup) && !contains(cgroup, kPodCgroup);
  return container;
}

}  // namespace gantry::oci
