// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/config_write.hpp"

#include "base/json/document.hpp"
#include "base/json/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gantry::mig {
namespace {

using Indexes = std::set<unsigned>;
using Filters = std::set<std::string>;

struct StateGroup {  // GPUs in the same state
  bool enabled = false;
  ProfileCounts counts;
  Indexes devices;
  Filters filters;
};

std::vector<StateGroup> group_states(const std::vector<MigGpu>& gpus) {
  std::vector<StateGroup> groups;
  unsigned index = 0;
  for (const auto position : pci_order(gpus)) {
    const auto& gpu = gpus[position];
    StateGroup state{.enabled = gpu.current == model::MigMode::Enabled,
                     .counts = {},
                     .devices = {index++},
                     .filters = {device_filter_of(gpu)}};
    if (state.enabled) state.counts = current_counts(gpu);
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const StateGroup& group) {
      return group.enabled == state.enabled && group.counts == state.counts;
    });
    if (same == groups.end()) {
      groups.push_back(std::move(state));
      continue;
    }
    same->devices.merge(state.devices);
    same->filters.merge(state.filters);
  }
  return groups;
}

// The GPUs of each model.
std::map<std::string, Indexes> devices_of_models(const std::vector<MigGpu>& gpus) {
  std::map<std::string, Indexes> devices;
  unsigned index = 0;
  for (const auto position : pci_order(gpus))
    devices[device_filter_of(gpus[position])].insert(index++);
  return devices;
}

ConfigEntry to_entry(const StateGroup& group, const std::map<std::string, Indexes>& models) {
  Indexes of_filters;
  for (const auto& filter : group.filters) {
    const auto& devices = models.at(filter);
    of_filters.insert(devices.begin(), devices.end());
  }
  ConfigEntry entry{.enabled = group.enabled, .counts = group.counts};
  if (models.size() > 1) entry.device_filter.assign(group.filters.begin(), group.filters.end());
  entry.all_devices = of_filters == group.devices;
  if (!entry.all_devices) entry.devices.assign(group.devices.begin(), group.devices.end());
  return entry;
}

// What a model can do; all GPUs of a model are alike.
std::map<std::string, const MigGpu*> capable_models(const std::vector<MigGpu>& gpus) {
  std::map<std::string, const MigGpu*> models;
  for (const auto& gpu : gpus) {
    if (gpu.current != model::MigMode::Unsupported && !gpu.profiles.empty())
      models.emplace(device_filter_of(gpu), &gpu);
  }
  return models;
}

ConfigEntry everywhere(ProfileCounts counts) {
  return {.all_devices = true, .enabled = true, .counts = std::move(counts)};
}

// Profiles without attributes: of each number of slices the one that fits most often.
std::map<unsigned, const GpuProfile*> base_profiles(const MigGpu& gpu) {
  std::map<unsigned, const GpuProfile*> found;
  for (const auto& profile : gpu.profiles) {
    const auto name = parse_profile_name(profile.name);
    if (!name.ok() || !name->with.empty() || !name->without.empty()) continue;
    auto& best = found[name->gpu_slices];
    if (best == nullptr || profile.max > best->max) best = &profile;
  }
  return found;
}

// Two small, one middle and, with seven slices, one large instance. Empty if the GPU has no such.
ProfileCounts balanced(const MigGpu& gpu) {
  const auto profiles = base_profiles(gpu);
  const auto slices = profiles.empty() ? 0 : profiles.rbegin()->first;
  std::vector<std::pair<unsigned, unsigned>> shape;  // slices, count
  if (slices == 7) shape = {{1, 2}, {2, 1}, {3, 1}};
  if (slices == 4) shape = {{1, 2}, {2, 1}};
  ProfileCounts counts;
  for (const auto& [size, count] : shape) {
    const auto at = profiles.find(size);
    if (at == profiles.end()) return {};
    counts[at->second->name] = count;
  }
  return counts;
}

void add_balanced(const std::map<std::string, const MigGpu*>& models, MigConfigFile& config) {
  for (const auto& [filter, gpu] : models) {
    auto counts = balanced(*gpu);
    if (counts.empty()) continue;
    auto entry = everywhere(std::move(counts));
    if (models.size() > 1) entry.device_filter = {filter};
    config.configs["all-balanced"].push_back(std::move(entry));
  }
}

void add_profiles(const std::map<std::string, const MigGpu*>& models, MigConfigFile& config) {
  std::map<std::string, std::map<unsigned, Filters>> profiles;  // name -> max -> models
  for (const auto& [filter, gpu] : models) {
    for (const auto& profile : gpu->profiles) {
      if (profile.max > 0) profiles[profile.name][profile.max].insert(filter);
    }
  }
  for (const auto& [name, counts] : profiles) {
    const auto parsed = parse_profile_name(name);
    if (!parsed.ok()) continue;
    for (const auto& [most, filters] : counts) {
      auto entry = everywhere({{to_string(*parsed), most}});
      if (models.size() > 1) entry.device_filter.assign(filters.begin(), filters.end());
      config.configs["all-" + to_resource_form(*parsed)].push_back(std::move(entry));
    }
  }
}

std::string yaml_filters(const ConfigEntry& entry) {
  const auto& filters = entry.device_filter;
  std::string text;
  for (const auto& filter : filters)
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", filter);
  return filters.size() == 1 ? text : fmt::format("[{}]", text);
}

std::string yaml_entry(const ConfigEntry& entry) {
  std::string text;
  if (!entry.device_filter.empty())
    text += fmt::format("device-filter: {}\n    ", yaml_filters(entry));
  text += entry.all_devices ? "devices: all\n"
                            : fmt::format("devices: [{}]\n", fmt::join(entry.devices, ", "));
  text += fmt::format("    mig-enabled: {}\n", entry.enabled);
  if (entry.counts.empty()) return text + "    mig-devices: {}\n";
  text += "    mig-devices:\n";
  for (const auto& [name, count] : entry.counts)
    text += fmt::format("      \"{}\": {}\n", name, count);
  return text;
}

void write_entry(json::Writer& out, const ConfigEntry& entry) {
  out.object([&] {
    if (entry.device_filter.size() == 1) out.member("device-filter", entry.device_filter[0]);
    if (entry.device_filter.size() > 1) out.array("device-filter", entry.device_filter);
    if (entry.all_devices)
      out.member("devices", "all");
    else
      out.array("devices", entry.devices);
    out.member("mig-enabled", entry.enabled);
    out.object("mig-devices", entry.counts);
  });
}

}  // namespace

MigConfigFile export_config(const std::vector<MigGpu>& gpus, std::string_view label) {
  MigConfigFile config{.file = "this machine", .configs = {}};
  auto& entries = config.configs[std::string(label)];
  const auto models = devices_of_models(gpus);
  for (const auto& group : group_states(gpus)) entries.push_back(to_entry(group, models));
  if (entries.size() == 1) entries[0].device_filter.clear();
  return config;
}

Result<MigConfigFile> generate_config(const std::vector<MigGpu>& gpus) {
  const auto models = capable_models(gpus);
  if (models.empty()) return Error(Errc::NotFound, "no GPU of this machine has MIG profiles");
  MigConfigFile config{.file = "the generated configuration", .configs = {}};
  config.configs["all-disabled"] = {{.all_devices = true}};
  config.configs["all-enabled"] = {everywhere({})};
  add_balanced(models, config);
  add_profiles(models, config);
  return config;
}

std::string to_yaml(const MigConfigFile& config) {
  std::string text = "version: v1\nmig-configs:\n";
  for (const auto& [name, entries] : config.configs) {
    text += fmt::format("  {}:\n", json::quote(name));
    for (const auto& entry : entries) text += "  - " + yaml_entry(entry);
  }
  return text;
}

std::string to_json(const MigConfigFile& config) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("version", "v1");
    out.object("mig-configs", [&] {
      for (const auto& [name, entries] : config.configs)
        out.array(name, entries, [&](const ConfigEntry& entry) { write_entry(out, entry); });
    });
  });
  return std::move(out).text() + "\n";
}

}  // namespace gantry::mig
