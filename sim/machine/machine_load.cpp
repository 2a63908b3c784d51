// SPDX-License-Identifier: Apache-2.0
// From a name to one merged YAML tree: based_on, card and include are resolved here.
#include "base/core/text.hpp"
#include "base/sys/host.hpp"
#include "sim/machine/machine_internal.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace gantry::sim {
namespace {

constexpr int kMaxIncludes = 8;  // based_on of based_on of ...

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".yaml");
}

Result<std::string> read_user_file(const std::string& path) {
  GANTRY_TRY(const sys::Host here, sys::Host::at("/"));
  std::error_code failed;
  const auto full = std::filesystem::absolute(path, failed);
  if (failed) return Error::sys(failed.value(), fmt::format("machine file {}", path));
  auto text = here.read(full.string(), kYamlBytes).in("machine file");
  if (text.ok() && trim(*text).empty()) {
    return Error(Errc::Corrupt, fmt::format("machine file {} is empty", path));
  }
  return text;
}

// A command lists the machines; there are so few parts that the message names them.
std::string no_part(std::string_view name, std::string_view folder) {
  if (folder.empty()) {
    return fmt::format("there is no machine \"{}\"; `gantry sim list` shows the machines", name);
  }
  std::string known;
  for (const auto& key : embedded_names()) {
    if (!key.starts_with(folder)) continue;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", key.substr(folder.size()));
  }
  return fmt::format("there is no {} \"{}\"; there are {}", folder.substr(0, folder.size() - 2),
                     name, known);
}

class Resolver {
 public:
  explicit Resolver(UserFiles user_files) : user_files_(user_files) {}

  // `folder` is "" for machines, "cards/" or "drivers/" for parts.
  Result<YamlValue> open(const std::string& name, std::string_view folder,
                         const std::string& from) {
    if (is_path(name)) {
      if (user_files_ == UserFiles::Refused) {
        return Error(
            Errc::Denied,
            fmt::format("{}: only names of built-in parts are allowed here, not {}", from, name));
      }
      auto path = std::filesystem::path(name);
      if (path.is_relative() && !from.empty() && is_path(from)) {
        path = std::filesystem::path(from).parent_path() / path;
      }
      GANTRY_TRY(const std::string text, read_user_file(path.string()));
      return parse_yaml(text, path.string());
    }
    const auto key = fmt::format("{}{}", folder, name);
    const auto text = embedded_text(key);
    if (!text) {
      return Error(Errc::NotFound,
                   fmt::format("{}{}{}", from, from.empty() ? "" : ": ", no_part(name, folder)));
    }
    return parse_yaml(*text, key + ".yaml");
  }

  Result<YamlValue> expand(YamlValue machine, int depth) {
    if (depth > kMaxIncludes) {
      return Error(Errc::Corrupt, fmt::format("{}: based_on forms a loop", machine.where()));
    }
    if (machine.kind != YamlValue::Kind::Map) {
      return Error(Errc::Corrupt, fmt::format("{}: a machine must be a map", machine.where()));
    }
    const YamlValue* base_name = machine.find("based_on");
    if (base_name != nullptr) {
      GANTRY_TRY(YamlValue base, open(base_name->text, "", *machine.file));
      GANTRY_TRY(base, expand(std::move(base), depth + 1));
      erase(machine, "based_on");
      merge(base, machine);
      machine = std::move(base);
    }
    GANTRY_CHECK(insert_part(machine.find("driver"), "include", "drivers/"));
    if (YamlValue* gpus = machine.find("gpus")) {
      for (auto& gpu : gpus->items) GANTRY_CHECK(insert_part(&gpu, "card", "cards/"));
    }
    GANTRY_CHECK(patch_gpus(machine));
    return machine;
  }

 private:
  static void erase(YamlValue& map, std::string_view key) {
    std::erase_if(map.entries, [&](const auto& entry) { return entry.key == key; });
  }

  // Replaces `key: NAME` by the keys of the part; keys of the map override them.
  Status insert_part(YamlValue* map, std::string_view key, std::string_view folder) {
    if (map == nullptr || map->kind != YamlValue::Kind::Map) return {};
    const YamlValue* name = map->find(key);
    if (name == nullptr) return {};
    GANTRY_TRY(YamlValue part, open(name->text, folder, *name->file));
    erase(*map, key);
    merge(part, *map);
    *map = std::move(part);
    return {};
  }

  // `change_gpus: {3: {lost: true}}` lets a machine differ from the one it is based on.
  static Status patch_gpus(YamlValue& machine) {
    const YamlValue* found = machine.find("change_gpus");
    if (found == nullptr) return {};
    const YamlValue changes = *found;
    erase(machine, "change_gpus");
    YamlValue* gpus = machine.find("gpus");
    for (const auto& [which, change] : changes.entries) {
      if (which == "all" && gpus != nullptr) {
        for (auto& gpu : gpus->items) merge(gpu, change);
        continue;
      }
      const auto index = parse_u64(which);
      if (!index || gpus == nullptr || *index >= gpus->items.size()) {
        return Error(Errc::Corrupt,
                     fmt::format("{}: GPU {} does not exist", change.where(), which));
      }
      merge(gpus->items[*index], change);
    }
    return {};
  }

  UserFiles user_files_;
};

}  // namespace

Result<Machine> load_machine(std::string_view name) {
  Resolver resolver(UserFiles::Allowed);
  GANTRY_TRY(YamlValue root, resolver.open(std::string(name), "", ""));
  GANTRY_TRY(const YamlValue whole, resolver.expand(std::move(root), 0));
  GANTRY_TRY(Machine machine, decode_machine(whole));
  if (machine.name.empty()) machine.name = std::filesystem::path(name).stem().string();
  return machine;
}

Result<Machine> parse_machine(std::string_view text, std::string_view file) {
  Resolver resolver(UserFiles::Refused);
  GANTRY_TRY(YamlValue root, parse_yaml(text, file));
  GANTRY_TRY(const YamlValue whole, resolver.expand(std::move(root), 0));
  GANTRY_TRY(Machine machine, decode_machine(whole));
  if (machine.name.empty()) machine.name = std::filesystem::path(file).stem().string();
  return machine;
}

std::vector<CatalogEntry> machine_catalog() {
  std::vector<CatalogEntry> machines;
  for (const auto& name : embedded_names()) {
    if (name.find('/') != std::string::npos) continue;
    const auto value = parse_yaml(*embedded_text(name), name);
    const YamlValue* description = value.ok() ? value->find("description") : nullptr;
    machines.push_back({name, description != nullptr ? description->text : ""});
  }
  return machines;
}

Result<std::string> machine_source(std::string_view name) {
  if (is_path(name)) return read_user_file(std::string(name));
  if (const auto text = embedded_text(name)) return std::string(*text);
  return Error(
      Errc::NotFound,
      fmt::format("there is no machine \"{}\"; `gantry sim list` shows the machines", name));
}

}  // namespace gantry::sim
