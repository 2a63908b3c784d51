// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/config_file.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "gpu/mig/config_reader_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::mig {
namespace {

using yaml::Value;

constexpr std::size_t kMaxEntries = 256;  // of one list
constexpr unsigned kMaxCount = 1'000'000;

std::optional<bool> read_truth(const Value& value) {
  if (value.kind != Value::Kind::Scalar || value.quoted) return std::nullopt;
  const auto word = to_lower(value.text);
  constexpr std::array<std::string_view, 3> kTrueWords{"true", "yes", "on"};
  constexpr std::array<std::string_view, 3> kFalseWords{"false", "no", "off"};
  if (std::find(kTrueWords.begin(), kTrueWords.end(), word) != kTrueWords.end()) return true;
  if (std::find(kFalseWords.begin(), kFalseWords.end(), word) != kFalseWords.end()) return false;
  return std::nullopt;
}

Status read_filter(const Value& value, ConfigEntry& entry) {
  const auto add = [&](const Value& item) -> Status {
    if (item.kind != Value::Kind::Scalar)
      return wrong_value(item,
                         "device-filter must be a device id such as \"0x233510DE\", or a list");
    if (!item.text.empty() || value.kind == Value::Kind::List)
      entry.device_filter.push_back(item.text);
    return {};
  };
  if (value.kind != Value::Kind::List) return add(value);
  if (value.items.size() > kMaxEntries) return wrong_value(value, "too many filters");
  for (const auto& item : value.items) GANTRY_CHECK(add(item));
  return {};
}

Status read_devices(const Value& value, ConfigEntry& entry) {
  if (value.kind == Value::Kind::Scalar && value.text == "all") {
    entry.all_devices = true;
    return {};
  }
  if (value.kind != Value::Kind::List)
    return wrong_value(value, "devices must be `all` or a list of indexes, such as [0, 1]");
  if (value.items.size() > kMaxEntries) return wrong_value(value, "too many devices");
  for (const auto& item : value.items) {
    const bool plain = item.kind == Value::Kind::Scalar && !item.quoted && all_digits(item.text);
    const auto index = plain ? parse_u64(item.text) : std::nullopt;
    if (!index || *index > kMaxCount) {
      return wrong_value(
          item, fmt::format("`{}` is not the index of a GPU", printable(item.text.substr(0, 64))));
    }
    entry.devices.push_back(static_cast<unsigned>(*index));
  }
  return {};
}

Status read_counts(const Value& value, ConfigEntry& entry) {
  if (value.kind != Value::Kind::Map)
    return wrong_value(value,
                       "mig-devices must be a map from profiles to counts, such as "
                       "{\"1g.18gb\": 2}");
  if (value.entries.size() > kMaxEntries) return wrong_value(value, "too many profiles");
  for (const auto& [key, count] : value.entries) {
    const auto name = parse_profile_name(key);
    if (!name.ok()) return wrong_value(count, name.error().text());
    const bool plain = count.kind == Value::Kind::Scalar && !count.quoted && all_digits(count.text);
    const auto number = plain ? parse_u64(count.text) : std::nullopt;
    if (!number || *number > kMaxCount) {
      return wrong_value(count, fmt::format("the count of {} must be a number, 0 or more, not `{}`",
                                            key, printable(count.text.substr(0, 64))));
    }
    entry.counts[to_string(*name)] += static_cast<unsigned>(*number);
  }
  const bool none = std::all_of(entry.counts.begin(), entry.counts.end(),
                                [](const auto& item) { return item.second == 0; });
  if (none && !entry.counts.empty())
    return wrong_value(value, "all counts are 0; write {} for no instances");
  return {};
}

Result<ConfigEntry> read_entry(const Value& map) {
  if (map.kind != Value::Kind::Map) return wrong_value(map, "an entry must be a map");
  GANTRY_CHECK(
      only_fields(map, "an entry", {"device-filter", "devices", "mig-enabled", "mig-devices"}));
  ConfigEntry entry{.line = map.line};
  for (const auto* field : {"devices", "mig-enabled"}) {
    if (map.find(field) == nullptr)
      return wrong_value(map, fmt::format("the field `{}` is missing", field));
  }
  if (const auto* filter = map.find("device-filter")) GANTRY_CHECK(read_filter(*filter, entry));
  GANTRY_CHECK(read_devices(*map.find("devices"), entry));
  const auto enabled = read_truth(*map.find("mig-enabled"));
  if (!enabled) return wrong_value(*map.find("mig-enabled"), "mig-enabled must be true or false");
  entry.enabled = *enabled;
  const auto* counts = map.find("mig-devices");
  const bool given = counts != nullptr && counts->kind != Value::Kind::Null;
  if (given) GANTRY_CHECK(read_counts(*counts, entry));
  if (entry.enabled && !given) {
    return wrong_value(map,
                       "the field `mig-devices` is missing; mig-enabled is true, so write the "
                       "instances, or {} for none");
  }
  if (!entry.enabled && !entry.counts.empty())
    return wrong_value(*counts, "mig-devices must be empty if mig-enabled is false");
  return entry;
}

Result<ConfigEntries> read_config(const Value& list) {
  if (list.kind != Value::Kind::List || list.items.empty())
    return wrong_value(list, "a configuration must be a list with at least one entry");
  if (list.items.size() > kMaxEntries) return wrong_value(list, "too many entries");
  ConfigEntries entries;
  for (const auto& item : list.items) {
    GANTRY_TRY(auto entry, read_entry(item));
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Device and vendor, and those of the subsystem if the filter has them.
struct FilterIds {
  std::uint32_t device = 0;
  std::optional<std::uint32_t> subsystem;
};

std::optional<std::uint32_t> read_id(std::string_view text) {
  const auto number = parse_u64(text, 0);
  if (!number || *number > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

std::optional<FilterIds> read_ids(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.empty() || parts.size() > 2) return std::nullopt;
  const auto device = read_id(parts[0]);
  if (!device) return std::nullopt;
  FilterIds ids{.device = *device, .subsystem = std::nullopt};
  if (parts.size() == 2) {
    ids.subsystem = read_id(parts[1]);
    if (!ids.subsystem) return std::nullopt;
  }
  return ids;
}

bool has_model(const ConfigEntry& entry, const MigGpu& gpu) {
  const auto matches = [&](const std::string& text) {
    const auto ids = read_ids(text);
    return ids && ids->device == gpu.device_id &&
           (!ids->subsystem || *ids->subsystem == gpu.subsystem_id);
  };
  const auto& filters = entry.device_filter;
  return filters.empty() || std::any_of(filters.begin(), filters.end(), matches);
}

bool names_index(const ConfigEntry& entry, std::size_t index) {
  return entry.all_devices ||
         std::find(entry.devices.begin(), entry.devices.end(), index) != entry.devices.end();
}

Result<LayoutRequest> request_of_entry(const MigConfigFile& config, const ConfigEntry& entry) {
  if (!entry.enabled) return LayoutRequest{.enabled = false, .instances = {}};
  auto request = request_from_counts(entry.counts);
  if (request.ok()) return request;
  return std::move(request).in(fmt::format("{}:{}", config.file, entry.line));
}

void add_notes(const MigConfigFile& config, const ConfigEntry& entry,
               const std::vector<MigGpu>& gpus, std::vector<std::string>& notes) {
  const auto where = fmt::format("{}:{}", config.file, entry.line);
  for (const auto& filter : entry.device_filter) {
    if (read_ids(filter)) continue;
    notes.push_back(
        fmt::format("{}: the device-filter `{}` is not a device id such as 0x233510DE, "
                    "so it means no GPU",
                    where, printable(filter.substr(0, 64))));
  }
  for (const auto index : entry.devices) {
    if (index < gpus.size()) continue;
    notes.push_back(fmt::format("{}: there is no GPU {}: this machine has {}", where, index,
                                gpus.empty()       ? "none"
                                : gpus.size() == 1 ? "only GPU 0"
                                                   : fmt::format("0 to {}", gpus.size() - 1)));
  }
}

}  // namespace

Result<MigConfigFile> parse_config(std::string_view text, std::string_view file) {
  GANTRY_TRY(const auto root, read_v1(text, file));
  GANTRY_CHECK(only_fields(root, "the file", {"version", "mig-configs"}));
  MigConfigFile config{.file = std::string(file), .configs = {}};
  const auto* configs = root.find("mig-configs");
  if (configs == nullptr) return config;
  if (configs->kind != Value::Kind::Map || configs->entries.empty())
    return wrong_value(*configs, "mig-configs must be a map with at least one configuration");
  for (const auto& [name, list] : configs->entries) {
    GANTRY_TRY(auto entries, read_config(list));
    config.configs.emplace(name, std::move(entries));
  }
  return config;
}

Result<const ConfigEntries*> find_config(const MigConfigFile& config, std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [known, entries] : config.configs) names.push_back(printable(known));
  if (name.empty() && config.configs.size() == 1) return &config.configs.begin()->second;
  const auto choices =
      names.empty() ? "its mig-configs is empty" : fmt::format("it has {}", fmt::join(names, ", "));
  if (name.empty() && !names.empty())
    return Error(Errc::Invalid, fmt::format("{} has several configurations", config.file))
        .advise(fmt::format("choose one: {}", choices));
  const auto found = config.configs.find(std::string(name));
  if (found != config.configs.end()) return &found->second;
  return Error(Errc::NotFound, fmt::format("{} has no configuration `{}`", config.file, name))
      .advise(choices);
}

std::vector<std::size_t> pci_order(const std::vector<MigGpu>& gpus) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < gpus.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return gpus[a].pci < gpus[b].pci; });
  return order;
}

std::string device_filter_of(const MigGpu& gpu) {
  return fmt::format("0x{:08X}", gpu.device_id);
}

Result<Selection> select_config(const MigConfigFile& config, std::string_view name,
                                const std::vector<MigGpu>& gpus) {
  GANTRY_TRY(const auto* entries, find_config(config, name));
  const auto order = pci_order(gpus);
  std::vector<std::optional<SelectedLayout>> chosen(gpus.size());  // by index
  Selection selection;
  for (const auto& entry : *entries) {
    GANTRY_TRY(const auto request, request_of_entry(config, entry));
    add_notes(config, entry, gpus, selection.notes);
    for (std::size_t index = 0; index < gpus.size(); ++index) {
      const auto& gpu = gpus[order[index]];
      if (!names_index(entry, index) || !has_model(entry, gpu)) continue;
      if (gpu.current == model::MigMode::Unsupported) {
        if (entry.all_devices || !entry.enabled) continue;
        return Error(Errc::Unsupported, fmt::format("{}:{}: GPU {} ({}) has no MIG", config.file,
                                                    entry.line, index, gpu.name))
            .advise("leave it out of `devices`");
      }
      chosen[index] = SelectedLayout{order[index], request, entry.line};
    }
  }
  for (auto& layout : chosen) {
    if (layout) selection.layouts.push_back(*std::move(layout));
  }
  return selection;
}

}  // namespace gantry::mig
