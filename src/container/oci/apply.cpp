// SPDX-License-Identifier: Apache-2.0
#include "container/oci/apply.hpp"

#include "base/json/patch.hpp"
#include "base/json/writer.hpp"
#include "container/oci/container.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gantry::oci {
namespace {

using json::Path;
using json::quote;
using json::Value;

// Removes the elements of an array whose member is one of `places`.
void remove_at(Value array, const Path& path, std::string_view member,
               const std::vector<std::string_view>& places, json::Patch& patch) {
  std::size_t index = 0;
  for (const auto element : array) {
    const auto place = element[member].string().value_or("");
    if (std::find(places.begin(), places.end(), place) != places.end()) {
      auto gone = path;
      gone.emplace_back(index);
      patch.remove(gone);
    }
    ++index;
  }
}

void apply_env(Value process, const std::vector<std::string>& env, json::Patch& patch) {
  const auto old = process["env"];
  for (const auto& assignment : env) {
    bool replaced = false;
    std::size_t index = 0;
    for (const auto entry : old) {
      if (variable_name(entry.string().value_or("")) == variable_name(assignment)) {
        const Path place{"process", "env", index};
        if (replaced) {
          patch.remove(place);
        } else {
          patch.set(place, quote(assignment));
        }
        replaced = true;
      }
      ++index;
    }
    if (!replaced) patch.append({"process", "env"}, quote(assignment));
  }
}

std::string device_text(const model::DeviceNodeEdit& node) {
  json::Writer out;
  out.object([&] {
    out.member("path", node.path);
    out.member("type", "c");
    out.member("major", *node.major);
    out.member("minor", *node.minor);
    if (node.mode) out.member("fileMode", *node.mode);
    out.member("uid", 0);
    out.member("gid", node.gid.value_or(0));
  });
  return std::move(out).text();
}

std::string rule_text(const model::DeviceNodeEdit& node) {
  json::Writer out;
  out.object([&] {
    out.member("allow", true);
    out.member("type", "c");
    out.member("major", *node.major);
    out.member("minor", *node.minor);
    out.member("access", node.permissions);
  });
  return std::move(out).text();
}

std::string bind_text(const std::string& destination, const std::string& source,
                      const std::vector<std::string>& options) {
  json::Writer out;
  out.object([&] {
    out.member("destination", destination);
    out.member("type", "bind");
    out.member("source", source);
    out.array("options", options);
  });
  return std::move(out).text();
}

std::string hook_text(const std::string& path, const std::vector<std::string>& args,
                      const std::vector<std::string>& env) {
  json::Writer out;
  out.object([&] {
    out.member("path", path);
    out.array("args", args);
    out.array("env", env);
  });
  return std::move(out).text();
}

Status apply_nodes(const json::Document& config, bool user_namespace,
                   const std::vector<model::DeviceNodeEdit>& nodes, json::Patch& patch) {
  std::vector<std::string_view> places;
  places.reserve(nodes.size());
  for (const auto& node : nodes) places.push_back(node.path);
  remove_at(config["linux"]["devices"], {"linux", "devices"}, "path", places, patch);
  for (const auto& node : nodes) {
    if (!node.major || !node.minor) {
      return Error(Errc::Invalid, fmt::format("{} has no device numbers", node.path));
    }
    if (user_namespace && node.host_path != node.path) {
      // In a user namespace, the runtime cannot create nodes and binds the host's node at the same
      // path instead. Our nodes have other paths (a simulated machine): the bind must be explicit.
      patch.append({"mounts"},
                   bind_text(node.path, node.host_path, {"bind", "nosuid", "noexec", "rprivate"}));
    } else {
      patch.append({"linux", "devices"}, device_text(node));
    }
    patch.append({"linux", "resources", "devices"}, rule_text(node));
  }
  return {};
}

void apply_mounts(Value mounts, const std::vector<model::MountEdit>& edits, json::Patch& patch) {
  std::vector<std::string_view> places;
  places.reserve(edits.size());
  for (const auto& edit : edits) places.push_back(edit.container_path);
  remove_at(mounts, {"mounts"}, "destination", places, patch);
  for (const auto& edit : edits) {
    patch.append({"mounts"}, bind_text(edit.container_path, edit.host_path, edit.options));
  }
}

void apply_hooks(Value hooks, const std::vector<model::HookEdit>& edits, json::Patch& patch) {
  std::size_t index = 0;
  for (const auto hook : hooks["prestart"]) {
    if (is_classic_hook(hook["path"].string().value_or(""))) {
      patch.remove({"hooks", "prestart", index});
    }
    ++index;
  }
  for (const auto& edit : edits) {
    patch.append({"hooks", edit.stage}, hook_text(edit.path, edit.args, edit.env));
  }
}

void apply_groups(Value process, const std::vector<std::uint32_t>& gids, json::Patch& patch) {
  const auto old = process["user"]["additionalGids"];
  for (const auto gid : gids) {
    bool there = false;
    for (const auto group : old) there = there || group.u64() == gid;
    if (!there) patch.append({"process", "user", "additionalGids"}, fmt::to_string(gid));
  }
}

}  // namespace

bool is_classic_hook(std::string_view path) {
  const auto name = path.substr(path.rfind('/') + 1);
  return name == "nvidia-container-runtime-hook" || name == "nvidia-container-toolkit";
}

Result<std::string> apply(const json::Document& config, const model::ContainerEdits& edits) {
  GANTRY_TRY(const auto container, parse_container(config));
  json::Patch patch;
  apply_env(config["process"], edits.env, patch);
  apply_mounts(config["mounts"], edits.mounts, patch);
  GANTRY_CHECK(apply_nodes(config, container.user_namespace, edits.nodes, patch));
  apply_hooks(config["hooks"], edits.hooks, patch);
  apply_groups(config["process"], edits.additional_gids, patch);
  return patch.apply(config).in("config.json");
}

Result<std::string> add_classic_hook(const json::Document& config, const std::string& path) {
  for (const auto hook : config["hooks"]["prestart"]) {
    if (is_classic_hook(hook["path"].string().value_or(""))) return config.text();
  }
  const std::string name = path.substr(path.rfind('/') + 1);
  json::Patch patch;
  // Without its own environment, a hook would get the image's.
  patch.append({"hooks", "prestart"},
               hook_text(path, {name, "prestart"},
                         {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}));
  return patch.apply(config).in("config.json");
}

}  // namespace gantry::oci
