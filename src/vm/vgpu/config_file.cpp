// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/config_file.hpp"

#include "base/core/nearest.hpp"
#include "base/core/text.hpp"
#include "base/yaml/value.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::vgpu {
namespace {

using yaml::Value;

constexpr std::size_t kMaxSets = 1024;
constexpr std::size_t kMaxEntries = 256;
constexpr unsigned kMaxCount = 1024;

Error wrong(const Value& at, std::string_view text) {
  return {Errc::Invalid, fmt::format("{}: {}", at.where(), text)};
}

Status only_keys(const Value& map, std::string_view what, const std::vector<std::string>& known) {
  for (const auto& [key, value] : map.entries) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const auto near = nearest_name(key, known);
    return wrong(value, fmt::format("{} has no key `{}`{}", what, key,
                                    near.empty() ? "" : fmt::format("; did you mean `{}`?", near)));
  }
  return {};
}

bool is_filter(std::string_view text) {
  return text.size() == 10 && (text.starts_with("0x") || text.starts_with("0X")) &&
         parse_u64(text.substr(2), 16).has_value();
}

Status read_filter(const Value& value, ConfigEntry& entry) {
  const auto add = [&](const Value& item) -> Status {
    if (item.kind != Value::Kind::Scalar || !is_filter(item.text)) {
      return wrong(item,
                   "device-filter must be device and vendor as eight hexadecimal digits, "
                   "such as \"0x20B010DE\"");
    }
    entry.device_filter.push_back(item.text);
    return {};
  };
  if (value.kind != Value::Kind::List) return add(value);
  if (value.items.size() > kMaxEntries) return wrong(value, "too many filters");
  for (const auto& item : value.items) GANTRY_CHECK(add(item));
  return {};
}

Status read_devices(const Value& value, ConfigEntry& entry) {
  if (value.kind == Value::Kind::Scalar && value.text == "all") {
    entry.all_devices = true;
    return {};
  }
  if (value.kind != Value::Kind::List)
    return wrong(value, "devices must be `all` or a list of indexes, such as [0, 1]");
  for (const auto& item : value.items) {
    const auto index =
        item.kind == Value::Kind::Scalar && !item.quoted ? parse_u64(item.text) : std::nullopt;
    if (!index || *index >= kMaxCount)
      return wrong(item, fmt::format("`{}` is not the index of a GPU", item.text));
    entry.devices.push_back(static_cast<unsigned>(*index));
  }
  if (entry.devices.size() > kMaxEntries) return wrong(value, "too many GPUs");
  return {};
}

Status read_counts(const Value& value, ConfigEntry& entry) {
  if (value.kind == Value::Kind::Null) return {};
  if (value.kind != Value::Kind::Map)
    return wrong(value, "vgpu-devices must be a map from types to counts, such as {A10-4Q: 6}");
  bool sliced = false;
  bool mig = false;
  for (const auto& [key, count] : value.entries) {
    const auto type = parse_type_name(key);
    if (!type) {
      return wrong(count, fmt::format("`{}` is not the name of a vGPU type, such as A10-4Q or "
                                      "A100-1-5C",
                                      key));
    }
    (type->mig_backed() ? mig : sliced) = true;
    const auto number = count.kind == Value::Kind::Scalar ? parse_u64(count.text) : std::nullopt;
    if (!number || *number == 0 || *number > kMaxCount) {
      return wrong(count, fmt::format("the count of {} must be 1 to {}, not `{}`", key, kMaxCount,
                                      count.text));
    }
    entry.vgpus[key] = static_cast<unsigned>(*number);
  }
  if (sliced && mig)
    return wrong(value, "a GPU cannot have time-sliced and MIG-backed vGPUs at the same time");
  return {};
}

Result<ConfigEntry> read_entry(const Value& map) {
  if (map.kind != Value::Kind::Map) return wrong(map, "an entry must be a map");
  GANTRY_CHECK(only_keys(map, "an entry", {"device-filter", "devices", "vgpu-devices"}));
  ConfigEntry entry{.line = map.line};
  if (const auto* filter = map.find("device-filter")) GANTRY_CHECK(read_filter(*filter, entry));
  const auto* devices = map.find("devices");
  if (devices == nullptr) return wrong(map, "`devices` is missing");
  GANTRY_CHECK(read_devices(*devices, entry));
  const auto* vgpus = map.find("vgpu-devices");
  if (vgpus == nullptr) return wrong(map, "`vgpu-devices` is missing; {} means none");
  GANTRY_CHECK(read_counts(*vgpus, entry));
  return entry;
}

Result<std::vector<ConfigEntry>> read_set(const Value& list) {
  std::vector<ConfigEntry> entries;
  if (list.kind == Value::Kind::Null) return entries;
  if (list.kind != Value::Kind::List) return wrong(list, "a set must be a list of entries");
  if (list.items.size() > kMaxEntries) return wrong(list, "too many entries");
  for (const auto& item : list.items) {
    GANTRY_TRY(auto entry, read_entry(item));
    entries.push_back(std::move(entry));
  }
  return entries;
}

bool matches(const ConfigEntry& entry, const VgpuGpu& gpu) {
  const auto& filters = entry.device_filter;
  const auto own = to_lower(gpu.device_filter());
  const bool model = filters.empty() ||
                     std::any_of(filters.begin(), filters.end(),
                                 [&](const std::string& text) { return to_lower(text) == own; });
  const auto& devices = entry.devices;
  return model && (entry.all_devices ||
                   std::find(devices.begin(), devices.end(), gpu.index) != devices.end());
}

}  // namespace

Result<VgpuConfig> parse_config(std::string_view text, std::string_view file) {
  GANTRY_TRY(const auto root, yaml::parse(text, file));
  if (root.kind != Value::Kind::Map) return wrong(root, "the file must be a map");
  const auto* version = root.find("version");
  if (version == nullptr)
    return wrong(root, "`version` is missing: the first line must be `version: v1`");
  if (version->text != "v1")
    return wrong(*version, fmt::format("version `{}` is not supported, only v1", version->text));
  GANTRY_CHECK(only_keys(root, "the file", {"version", "vgpu-configs"}));
  VgpuConfig config{.file = std::string(file)};
  const auto* sets = root.find("vgpu-configs");
  if (sets == nullptr || sets->kind == Value::Kind::Null) return config;
  if (sets->kind != Value::Kind::Map)
    return wrong(*sets, "vgpu-configs must be a map from names to lists");
  if (sets->entries.size() > kMaxSets) return wrong(*sets, "too many sets");
  for (const auto& [name, list] : sets->entries) {
    GANTRY_TRY(auto entries, read_set(list));
    config.sets.emplace(name, std::move(entries));
  }
  return config;
}

Result<const std::vector<ConfigEntry>*> find_set(const VgpuConfig& config, std::string_view name) {
  const auto found = config.sets.find(std::string(name));
  if (found != config.sets.end()) return &found->second;
  std::vector<std::string> names;
  for (const auto& [known, entries] : config.sets) names.push_back(known);
  return Error(Errc::NotFound, fmt::format("{} has no set `{}`", config.file, name))
      .advise(names.empty() ? "its vgpu-configs is empty"
                            : fmt::format("it has {}", fmt::join(names, ", ")));
}

Result<std::vector<DesiredVgpus>> select_set(const VgpuConfig& config, std::string_view name,
                                             const std::vector<VgpuGpu>& gpus) {
  GANTRY_TRY(const auto* entries, find_set(config, name));
  std::vector<DesiredVgpus> wanted;
  std::map<unsigned, int> taken;  // index of a GPU -> line of the entry
  for (const auto& entry : *entries) {
    for (const auto index : entry.devices) {
      if (index < gpus.size()) continue;
      return Error(Errc::Invalid,
                   fmt::format("{}:{}: there is no GPU {}: this machine has {}", config.file,
                               entry.line, index,
                               gpus.empty() ? "none" : fmt::format("0 to {}", gpus.size() - 1)))
          .advise("`gantry vgpu list` shows them");
    }
    for (const auto& gpu : gpus) {
      if (!matches(entry, gpu)) continue;
      const auto [at, fresh] = taken.emplace(gpu.index, entry.line);
      if (!fresh) {
        return Error(Errc::Invalid,
                     fmt::format("{}: the entries in lines {} and {} of `{}` both name {}",
                                 config.file, at->second, entry.line, name, gpu.label()))
            .advise("write each GPU's vGPUs in one entry");
      }
      wanted.push_back({.gpu = gpu.address, .counts = entry.vgpus});
    }
  }
  return wanted;
}

}  // namespace gantry::vgpu
