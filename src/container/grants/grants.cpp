// SPDX-License-Identifier: Apache-2.0
#include "container/grants/grants.hpp"

#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "base/sys/remove_tree.hpp"
#include "base/sys/replace_file.hpp"
#include "base/sys/trusted.hpp"
#include "gpu/model/enum_names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::grants {
namespace {

constexpr std::size_t kMaxNameBytes = 253;
constexpr std::size_t kMaxGrantBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxDevices = 1024;  // the limit of a request

Error corrupt(std::string_view what) {
  return {Errc::Corrupt, fmt::format("grant: {}", what)};
}

bool is_list_of_texts(json::Value value) {
  if (!value.is(json::Kind::Array) || value.size() > kMaxDevices) return false;
  const auto elements = value;
  for (const auto element : elements) {
    if (!element.is(json::Kind::String)) return false;
  }
  return true;
}

std::string pod_directory(std::string_view pod_uid) {
  return fmt::format("{}/{}", kGrantsDirectory, pod_uid);
}

Status remove_pod(const sys::Host& host, const std::string& pod_uid) {
  const auto directory = host.open(kGrantsDirectory, O_RDONLY | O_DIRECTORY);
  if (!directory.ok()) {
    if (directory.error().code() == Errc::NotFound) return {};
    return Error(directory.error()).in("removing grants");
  }
  const auto removed = sys::remove_tree(directory->get(), pod_uid);
  if (removed.ok() || removed.error().code() == Errc::NotFound) return {};
  return Error(removed.error()).in(fmt::format("removing the grants of pod {}", pod_uid));
}

// The names in a directory; empty if it does not exist.
Result<std::vector<std::string>> names_below(const sys::Host& host, std::string_view path) {
  auto names = host.list(path);
  if (!names.ok() && names.error().code() == Errc::NotFound) return std::vector<std::string>{};
  return names;
}

}  // namespace

bool is_valid_name(std::string_view name) {
  const auto is_fine = [](char c) {
    return c != '/' && static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
  };
  return !name.empty() && name.size() <= kMaxNameBytes &&
         name.find_first_not_of('.') != std::string_view::npos &&
         std::all_of(name.begin(), name.end(), is_fine);
}

Result<std::string> grant_path(std::string_view pod_uid, std::string_view container) {
  for (const auto name : {pod_uid, container}) {
    if (is_valid_name(name)) continue;
    return Error(Errc::Invalid, fmt::format("{} is not a valid name of a pod or container",
                                            json::quote(name.substr(0, kMaxNameBytes))));
  }
  return fmt::format("{}/{}/grant.json", pod_directory(pod_uid), container);
}

namespace {

void write_members(json::Writer& out, const model::GrantShare& share) {
  out.member("name", share.name);
  out.member("phase", model::to_string(share.phase));
  out.member("position", share.position);
  out.array("parts", share.parts, [&](const model::GpuShare& part) {
    out.object([&] {
      out.member("gpu", part.uuid.text);
      out.member("index", part.index);
      out.member("mib", part.mib);
      out.member("cores", part.cores);
    });
  });
  out.array("otherSlots", share.other_slots);
}

Result<model::GrantShare> share_from(json::Value value) {
  const auto phase = model::parse_enum<model::ContainerPhase>(value["phase"].string().value_or(""));
  const auto position = value["position"].u64();
  if (!value["name"].string() || !phase || !position || *position > UINT32_MAX ||
      !value["parts"].is(json::Kind::Array) || value["parts"].size() > kMaxDevices ||
      !is_list_of_texts(value["otherSlots"]))
    return corrupt("`share` is incomplete");
  model::GrantShare share{.name = *value["name"].string(),
                          .phase = *phase,
                          .position = static_cast<std::uint32_t>(*position),
                          .other_slots = value["otherSlots"].strings()};
  const auto parts = value["parts"];
  for (const auto part : parts) {
    const auto index = part["index"].u64();
    const auto mib = part["mib"].u64();
    const auto cores = part["cores"].u64();
    if (!part["gpu"].string() || !mib || !index || *index > UINT32_MAX || !cores || *cores > 100)
      return corrupt("`share` has an invalid part");
    share.parts.push_back({.uuid = {*part["gpu"].string()},
                           .index = static_cast<std::uint32_t>(*index),
                           .mib = *mib,
                           .cores = static_cast<std::uint32_t>(*cores)});
  }
  return share;
}

}  // namespace

std::string to_json(const model::Grant& grant) {
  json::Writer out(json::Layout::Spaced);
  out.object([&] {
    out.member("version", 1);
    out.array("devices", model::to_texts(grant.devices));
    out.member("namespace", grant.pod.name_space);
    out.member("pod", grant.pod.name);
    out.object("resources", [&] {
      for (const auto& [name, ids] : grant.resources) out.array(name, ids);
    });
    if (grant.share) out.object("share", [&] { write_members(out, *grant.share); });
  });
  return out.text() + "\n";
}

Result<model::Grant> parse(std::string_view text) {
  GANTRY_TRY(const auto document, json::Document::parse(std::string(text)).in("grant"));
  if (!is_list_of_texts(document["devices"])) return corrupt("`devices` is not a list of strings");
  model::Grant grant{.devices = model::to_uuids(document["devices"].strings()),
                     .pod = {.name_space = document["namespace"].string().value_or(""),
                             .name = document["pod"].string().value_or("")}};
  if (document["share"]) {
    GANTRY_TRY(grant.share, share_from(document["share"]));
  }
  const auto resources = document["resources"];
  if (!resources.is(json::Kind::Object)) return grant;
  for (const auto resource : resources) grant.resources[resource.key()] = resource.strings();
  return grant;
}

Result<model::Grant> read(const sys::Host& host, std::string_view pod_uid,
                          std::string_view container) {
  const auto path = grant_path(pod_uid, container);
  if (!path.ok()) return Error(Errc::NotFound, "there is no grant: the name is not valid");
  GANTRY_TRY(const auto text, sys::read_trusted(host, *path, kMaxGrantBytes));
  GANTRY_TRY(auto grant, parse(text).in(host.outside(*path)));
  grant.pod.uid = pod_uid;
  return grant;
}

Status write(const sys::Host& host, std::string_view container, const model::Grant& grant) {
  GANTRY_TRY(const auto path, grant_path(grant.pod.uid, container));
  return sys::replace_file(host.outside(path), to_json(grant), 0644, sys::Durability::Volatile)
      .in(fmt::format("writing the grant of container {} of pod {}", container, grant.pod.uid));
}

Result<std::vector<std::string>> pods(const sys::Host& host) {
  return names_below(host, kGrantsDirectory);
}

Result<std::vector<GrantFile>> list(const sys::Host& host) {
  std::vector<GrantFile> result;
  GANTRY_TRY(const auto uids, pods(host));
  for (const auto& pod : uids) {
    const auto containers = host.list(pod_directory(pod));
    if (!containers.ok()) continue;
    for (const auto& container : *containers) {
      auto grant = read(host, pod, container);
      if (grant.ok()) result.push_back({container, *std::move(grant)});
    }
  }
  return result;
}

Status remove(const sys::Host& host, std::string_view pod_uid) {
  if (!is_valid_name(pod_uid)) return Error(Errc::Invalid, "the pod's UID is not a valid name");
  return remove_pod(host, std::string(pod_uid));
}

Status remove(const sys::Host& host, std::string_view pod_uid, std::string_view container) {
  GANTRY_CHECK(grant_path(pod_uid, container));
  const auto directory = host.open(pod_directory(pod_uid), O_RDONLY | O_DIRECTORY);
  if (!directory.ok() && directory.error().code() == Errc::NotFound) return {};
  if (!directory.ok()) return Error(directory.error()).in("removing a grant");
  const auto removed = sys::remove_tree(directory->get(), std::string(container));
  if (!removed.ok() && removed.error().code() != Errc::NotFound)
    return Error(removed.error()).in(fmt::format("removing the grant of container {}", container));
  // Removes the pod's directory if this was its last grant.
  const auto left = names_below(host, pod_directory(pod_uid));
  return left.ok() && left->empty() ? remove_pod(host, std::string(pod_uid)) : Status();
}

}  // namespace gantry::grants
