// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.hpp"
#include "container/runtime/injection/container_record.hpp"

#include <fmt/format.h>

#include <functional>

namespace gantry::runtime {
namespace {

using json::quote;
using json::Value;

template <class T>
std::string array(const std::vector<T>& items, const std::function<std::string(const T&)>& text) {
  std::string result = "[";
  for (const auto& item : items) result += (result.size() > 1 ? "," : "") + text(item);
  return result + "]";
}

std::string array(const std::vector<std::string>& items) {
  return array<std::string>(items, [](const std::string& item) { return quote(item); });
}

std::string number(const std::optional<std::uint32_t>& value) {
  return value ? fmt::to_string(*value) : "null";
}

std::string node_text(const model::DeviceNodeEdit& node) {
  return fmt::format(
      R"({{"path":{},"host_path":{},"major":{},"minor":{},"mode":{},"gid":{},"permissions":{},"why":{}}})",
      quote(node.path), quote(node.host_path), number(node.major), number(node.minor),
      number(node.mode), number(node.gid), quote(node.permissions), quote(node.why));
}

std::string mount_text(const model::MountEdit& mount) {
  return fmt::format(R"({{"host_path":{},"container_path":{},"options":{},"why":{}}})",
                     quote(mount.host_path), quote(mount.container_path), array(mount.options),
                     quote(mount.why));
}

std::string hook_text(const model::HookEdit& hook) {
  return fmt::format(R"({{"stage":{},"path":{},"args":{},"env":{},"why":{}}})", quote(hook.stage),
                     quote(hook.path), array(hook.args), array(hook.env), quote(hook.why));
}

std::string library_text(const model::LibraryEdit& library) {
  return fmt::format(R"({{"name":{},"path":{},"is_32bit":{}}})", quote(library.name),
                     quote(library.path), library.is_32bit);
}

std::string file_text(const model::FileEdit& file) {
  return fmt::format(R"({{"path":{},"content":{},"mode":{},"why":{}}})", quote(file.path),
                     quote(file.content), file.mode, quote(file.why));
}

std::string edits_text(const model::ContainerEdits& edits) {
  return fmt::format(
      R"({{"nodes":{},"mounts":{},"env":{},"hooks":{},"libraries":{},"files":{},"additional_gids":{},"notes":{}}})",
      array<model::DeviceNodeEdit>(edits.nodes, node_text),
      array<model::MountEdit>(edits.mounts, mount_text), array(edits.env),
      array<model::HookEdit>(edits.hooks, hook_text),
      array<model::LibraryEdit>(edits.libraries, library_text),
      array<model::FileEdit>(edits.files, file_text),
      array<std::uint32_t>(edits.additional_gids,
                           [](const std::uint32_t& gid) { return fmt::to_string(gid); }),
      array(edits.notes));
}

std::string word(Value value) {
  return value.string().value_or("");
}

std::optional<std::uint32_t> u32(Value value) {
  const auto read = value.u64();
  if (!read || *read > 0xFFFFFFFFU) return std::nullopt;
  return static_cast<std::uint32_t>(*read);
}

model::ContainerEdits edits_from(Value value) {
  model::ContainerEdits edits;
  for (const auto node : value["nodes"]) {
    edits.nodes.push_back({.path = word(node["path"]),
                           .host_path = word(node["host_path"]),
                           .major = u32(node["major"]),
                           .minor = u32(node["minor"]),
                           .mode = u32(node["mode"]),
                           .gid = u32(node["gid"]),
                           .permissions = word(node["permissions"]),
                           .why = word(node["why"])});
  }
  for (const auto mount : value["mounts"]) {
    edits.mounts.push_back({word(mount["host_path"]), word(mount["container_path"]),
                            mount["options"].strings(), word(mount["why"])});
  }
  for (const auto hook : value["hooks"]) {
    edits.hooks.push_back({word(hook["stage"]), word(hook["path"]), hook["args"].strings(),
                           hook["env"].strings(), word(hook["why"])});
  }
  for (const auto library : value["libraries"]) {
    edits.libraries.push_back({word(library["name"]), word(library["path"]),
                               library["is_32bit"].boolean().value_or(false)});
  }
  for (const auto file : value["files"]) {
    edits.files.push_back({word(file["path"]), word(file["content"]),
                           u32(file["mode"]).value_or(0644), word(file["why"])});
  }
  for (const auto gid : value["additional_gids"]) {
    if (const auto group = u32(gid)) edits.additional_gids.push_back(*group);
  }
  edits.env = value["env"].strings();
  edits.notes = value["notes"].strings();
  return edits;
}

}  // namespace

std::string to_json(const ContainerRecord& record) {
  return fmt::format(
      R"({{"id":{},"bundle":{},"state":{},"flavour":{},"asked":{},"decided":{},"notes":{},"edits":{}}})"
      "\n",
      quote(record.id), quote(record.bundle), quote(record.state), quote(record.flavour),
      array(record.asked), array(record.decided), array(record.notes), edits_text(record.edits));
}

Result<ContainerRecord> container_record_from_json(std::string_view text) {
  GANTRY_TRY(const auto document, json::Document::parse(std::string(text)).in("account"));
  if (!document["id"].is(json::Kind::String) || !document["edits"].is(json::Kind::Object)) {
    return Error(Errc::Corrupt, "container record: `id` or `edits` is missing");
  }
  return ContainerRecord{.id = word(document["id"]),
                         .bundle = word(document["bundle"]),
                         .state = word(document["state"]),
                         .flavour = word(document["flavour"]),
                         .asked = document["asked"].strings(),
                         .decided = document["decided"].strings(),
                         .notes = document["notes"].strings(),
                         .edits = edits_from(document["edits"])};
}

}  // namespace gantry::runtime
