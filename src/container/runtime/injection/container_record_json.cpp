// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "container/runtime/injection/container_record.hpp"

namespace gantry::runtime {
namespace {

using json::Value;

void write_node(json::Writer& out, const model::DeviceNodeEdit& node) {
  out.object([&] {
    out.member("path", node.path);
    out.member("host_path", node.host_path);
    out.member("major", node.major);
    out.member("minor", node.minor);
    out.member("mode", node.mode);
    out.member("gid", node.gid);
    out.member("permissions", node.permissions);
    out.member("why", node.why);
  });
}

void write_mount(json::Writer& out, const model::MountEdit& mount) {
  out.object([&] {
    out.member("host_path", mount.host_path);
    out.member("container_path", mount.container_path);
    out.array("options", mount.options);
    out.member("why", mount.why);
  });
}

void write_hook(json::Writer& out, const model::HookEdit& hook) {
  out.object([&] {
    out.member("stage", hook.stage);
    out.member("path", hook.path);
    out.array("args", hook.args);
    out.array("env", hook.env);
    out.member("why", hook.why);
  });
}

void write_library(json::Writer& out, const model::LibraryEdit& library) {
  out.object([&] {
    out.member("name", library.name);
    out.member("path", library.path);
    out.member("is_32bit", library.is_32bit);
  });
}

void write_file(json::Writer& out, const model::FileEdit& file) {
  out.object([&] {
    out.member("path", file.path);
    out.member("content", file.content);
    out.member("mode", file.mode);
    out.member("why", file.why);
  });
}

void write_edits(json::Writer& out, const model::ContainerEdits& edits) {
  out.object("edits", [&] {
    out.array("nodes", edits.nodes, [&](const auto& node) { write_node(out, node); });
    out.array("mounts", edits.mounts, [&](const auto& mount) { write_mount(out, mount); });
    out.array("env", edits.env);
    out.array("hooks", edits.hooks, [&](const auto& hook) { write_hook(out, hook); });
    out.array("libraries", edits.libraries,
              [&](const auto& library) { write_library(out, library); });
    out.array("files", edits.files, [&](const auto& file) { write_file(out, file); });
    out.array("additional_gids", edits.additional_gids);
    out.array("notes", edits.notes);
  });
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

void write_members(json::Writer& out, const ContainerRecord& record) {
  out.member("id", record.id);
  out.member("bundle", record.bundle);
  out.member("state", record.state);
  out.member("flavour", record.flavour);
  out.array("asked", record.asked);
  out.array("decided", record.decided);
  out.array("notes", record.notes);
  write_edits(out, record.edits);
}

std::string to_json(const ContainerRecord& record) {
  json::Writer out;
  out.object([&] { write_members(out, record); });
  return out.text() + "\n";
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
