// SPDX-License-Identifier: Apache-2.0
// Reads sharing, resources and gantry.gpus of the configuration file.
#include "base/core/text.hpp"
#include "node/options/options_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace gantry::options {
namespace {

constexpr std::int64_t kMaxReplicas = 1024;  // the kubelet's list of devices must stay below 4 MiB
constexpr std::size_t kMaxRules = 256;

Status check_keys(const yaml::Value& map, std::string_view place,
                  std::initializer_list<std::string_view> known) {
  if (map.kind != yaml::Value::Kind::Map)
    return error_at(map, fmt::format("{} is not a map", place));
  for (const auto& entry : map.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    return error_at(entry.value,
                    fmt::format("unknown key `{}` in {}{}", entry.key, place,
                                did_you_mean(entry.key, {known.begin(), known.end()})));
  }
  return {};
}

Result<std::string> scalar_text(const yaml::Value& map, std::string_view key) {
  const auto* value = map.find(key);
  if (value == nullptr || value->kind == yaml::Value::Kind::Null) return std::string();
  if (value->kind != yaml::Value::Kind::Scalar)
    return error_at(*value, fmt::format("{} is not a string", key));
  return value->text;
}

Result<bool> flag_of(const yaml::Value& map, std::string_view key, bool otherwise) {
  GANTRY_TRY(const auto text, scalar_text(map, key));
  if (text.empty()) return otherwise;
  if (text == "true") return true;
  if (text == "false") return false;
  return error_at(*map.find(key), fmt::format("{} is neither true nor false", key));
}

Result<std::string> optional_resource_name(const yaml::Value& map, std::string_view key) {
  GANTRY_TRY(const auto text, scalar_text(map, key));
  if (text.empty()) return std::string();
  return resource_name(text).in(map.find(key)->where());
}

Result<std::int64_t> replicas_of(const yaml::Value& map) {
  const auto* value = map.find("replicas");
  if (value == nullptr)
    return error_at(map, "replicas is missing: say how often each device is offered");
  const auto number = parse_i64(value->text);
  if (value->kind != yaml::Value::Kind::Scalar || !number || *number < 2 ||
      *number > kMaxReplicas) {
    return error_at(*value, fmt::format("replicas must be 2 to {}", kMaxReplicas));
  }
  return *number;
}

// "0", "0:1", "GPU-...", "MIG-..."
bool is_device_id(std::string_view text) {
  if (text.starts_with("GPU-") || text.starts_with("MIG-")) return text.size() <= 63;
  const auto colon = text.find(':');
  const auto gpu = text.substr(0, colon);
  if (!parse_u64(gpu)) return false;
  return colon == text.npos || parse_u64(text.substr(colon + 1)).has_value();
}

Result<DeviceChoice> choice_from_list(const yaml::Value& list) {
  DeviceChoice choice{.all = false};
  if (list.items.empty()) return error_at(list, "the list of devices is empty");
  if (list.items.size() > kMaxRules) return error_at(list, "too many devices");
  for (const auto& item : list.items) {
    if (item.kind != yaml::Value::Kind::Scalar || !is_device_id(item.text)) {
      return error_at(
          item, fmt::format("`{}` is not a device; write an index (0), an instance (0:1) or a UUID",
                            item.text));
    }
    choice.ids.push_back(item.text);
  }
  return choice;
}

Result<DeviceChoice> choice_of(const yaml::Value& map) {
  const auto* value = map.find("devices");
  if (value == nullptr || value->kind == yaml::Value::Kind::Null) return DeviceChoice{};
  if (value->kind == yaml::Value::Kind::List) return choice_from_list(*value);
  if (value->kind == yaml::Value::Kind::Scalar) {
    if (value->text == "all") return DeviceChoice{};
    const auto count = parse_i64(value->text);
    if (count && !value->quoted && *count > 0) return DeviceChoice{.all = false, .count = *count};
  }
  return error_at(*value, "devices must be `all`, a count above 0, or a list of devices");
}

Result<const yaml::Value*> list_at(const yaml::Value& map, std::string_view key) {
  const auto* list = map.find(key);
  if (list == nullptr || list->kind == yaml::Value::Kind::Null) return nullptr;
  if (list->kind != yaml::Value::Kind::List)
    return error_at(*list, fmt::format("{} is not a list", key));
  if (list->items.size() > kMaxRules) return error_at(*list, fmt::format("{} is too long", key));
  return list;
}

Result<SharedResource> shared_from(const yaml::Value& map, std::string_view place) {
  GANTRY_CHECK(check_keys(map, place, {"name", "rename", "devices", "replicas"}));
  SharedResource shared{.where = map.where()};
  GANTRY_TRY(shared.name, optional_resource_name(map, "name"));
  if (shared.name.empty()) return error_at(map, "name is missing: say which resource is shared");
  GANTRY_TRY(shared.rename, optional_resource_name(map, "rename"));
  GANTRY_TRY(shared.devices, choice_of(map));
  GANTRY_TRY(shared.replicas, replicas_of(map));
  return shared;
}

Result<Sharing> sharing_from(const yaml::Value& map, SharingKind kind, std::string_view place) {
  GANTRY_CHECK(
      check_keys(map, place, {"renameByDefault", "failRequestsGreaterThanOne", "resources"}));
  Sharing sharing{.kind = kind};
  GANTRY_TRY(sharing.rename_by_default, flag_of(map, "renameByDefault", false));
  // A second replica adds no memory or time; with MPS, NVIDIA's plugin refuses it by default.
  GANTRY_TRY(sharing.only_one,
             flag_of(map, "failRequestsGreaterThanOne", kind == SharingKind::Mps));
  GANTRY_TRY(const auto* list, list_at(map, "resources"));
  if (list == nullptr || list->items.empty()) {
    return error_at(map, fmt::format("{}.resources is missing: nothing would be shared", place));
  }
  for (const auto& item : list->items) {
    GANTRY_TRY(auto shared, shared_from(item, fmt::format("{}.resources", place)));
    sharing.resources.push_back(std::move(shared));
  }
  return sharing;
}

Status read_rules(const yaml::Value& map, std::string_view key, std::vector<NameRule>& rules) {
  GANTRY_TRY(const auto* list, list_at(map, key));
  if (list == nullptr) return {};
  rules.clear();
  for (const auto& item : list->items) {
    GANTRY_CHECK(check_keys(item, fmt::format("resources.{}", key), {"pattern", "name"}));
    NameRule rule{.where = item.where()};
    GANTRY_TRY(rule.pattern, scalar_text(item, "pattern"));
    GANTRY_TRY(rule.name, optional_resource_name(item, "name"));
    if (rule.pattern.empty() || rule.name.empty() || rule.pattern.size() > 128) {
      return error_at(
          item,
          "pattern and name are both needed, and the pattern may have at most 128 characters");
    }
    rules.push_back(std::move(rule));
  }
  return {};
}

Result<GpuRule> gpu_rule_from(const yaml::Value& map) {
  GANTRY_CHECK(check_keys(map, "gantry.gpus", {"devices", "use", "replicas", "name"}));
  GpuRule rule{.where = map.where()};
  GANTRY_TRY(rule.devices, choice_of(map));
  GANTRY_TRY(const auto word, scalar_text(map, "use"));
  const auto use = model::parse_enum<model::AllocationMode>(word);
  if (!use) {
    return error_at(map, fmt::format("use is `{}`; it must be one of {}", word,
                                     fmt::join(model::kEnumNames<model::AllocationMode>, ", ")));
  }
  rule.use = *use;
  if (rule.use == model::AllocationMode::Replicas) {
    GANTRY_TRY(rule.replicas, replicas_of(map));
  } else if (map.find("replicas") != nullptr) {
    return error_at(
        map, fmt::format("replicas is not allowed with use: {}; it needs use: replicas", word));
  }
  GANTRY_TRY(rule.name, optional_resource_name(map, "name"));
  const bool named =
      rule.use == model::AllocationMode::Whole || rule.use == model::AllocationMode::Replicas;
  if (!rule.name.empty() && !named) {
    return error_at(
        map, fmt::format("name is not allowed with use: {}; it needs use: whole or use: replicas",
                         word));
  }
  return rule;
}

}  // namespace

Status read_sharing(const yaml::Value& value, Options& options) {
  if (value.kind == yaml::Value::Kind::Null) return {};
  GANTRY_CHECK(check_keys(value, "sharing", {"timeSlicing", "mps"}));
  Sharing sharing;
  for (const auto& [key, kind] :
       {std::pair{"timeSlicing", SharingKind::TimeSlicing}, std::pair{"mps", SharingKind::Mps}}) {
    const auto* part = value.find(key);
    if (part == nullptr || part->kind == yaml::Value::Kind::Null) continue;
    GANTRY_TRY(sharing, sharing_from(*part, kind, fmt::format("sharing.{}", key)));
  }
  options.sharing = std::move(sharing);
  return {};
}

Status read_name_rules(const yaml::Value& value, Options& options) {
  if (value.kind == yaml::Value::Kind::Null) return {};
  GANTRY_CHECK(check_keys(value, "resources", {"gpus", "mig"}));
  GANTRY_CHECK(read_rules(value, "gpus", options.gpu_names));
  return read_rules(value, "mig", options.mig_names);
}

Status read_gpu_rules(const yaml::Value& value, Options& options) {
  if (value.kind == yaml::Value::Kind::Null) return {};
  if (value.kind != yaml::Value::Kind::List || value.items.size() > kMaxRules) {
    return error_at(value, "gantry.gpus is not a list of at most 256 items");
  }
  options.gpus.clear();
  for (const auto& item : value.items) {
    GANTRY_TRY(auto rule, gpu_rule_from(item));
    options.gpus.push_back(std::move(rule));
  }
  return {};
}

}  // namespace gantry::options
