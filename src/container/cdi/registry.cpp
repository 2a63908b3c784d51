// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/registry.hpp"

#include "container/cdi/convert.hpp"
#include "container/cdi/names.hpp"
#include "container/cdi/read.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace gantry::cdi {
namespace {

template <class Item>
void move_behind(std::vector<Item>& list, std::vector<Item>&& more) {
  for (auto& item : more) list.push_back(std::move(item));
}

void add(model::ContainerEdits& edits, model::ContainerEdits&& more) {
  move_behind(edits.nodes, std::move(more.nodes));
  move_behind(edits.mounts, std::move(more.mounts));
  move_behind(edits.env, std::move(more.env));
  move_behind(edits.hooks, std::move(more.hooks));
  move_behind(edits.additional_gids, std::move(more.additional_gids));
  move_behind(edits.notes, std::move(more.notes));
}

}  // namespace

std::vector<std::string> default_directories() {
  return {"/etc/cdi", "/var/run/cdi"};
}

Registry Registry::load(const sys::Host& host, const std::vector<std::string>& directories,
                        const Skip& skip) {
  Registry registry;
  for (std::size_t i = 0; i < directories.size(); ++i) {
    registry.add_directory(host, directories[i], i, skip);
  }
  registry.resolve();
  return registry;
}

void Registry::add_directory(const sys::Host& host, const std::string& directory,
                             std::size_t priority, const Skip& skip) {
  const auto names = host.list(directory);
  if (!names.ok()) return;
  for (const auto& name : *names) {
    if (!name.ends_with(".yaml") && !name.ends_with(".json")) continue;
    const auto path = fmt::format("{}/{}", directory, name);
    if (skip && skip(path)) continue;
    const auto text = host.read(path, kMaxSpecBytes);
    auto spec = text.ok() ? load_spec(*text, path) : Result<Spec>(text.error());
    if (spec.ok()) {
      files_.push_back({path, priority, *std::move(spec)});
    } else {
      rejected_.push_back({path, spec.error().text()});
    }
  }
}

// Engines drop a name that two files of one directory define, even if a later directory defines it,
// too.
void Registry::resolve() {
  std::set<std::string> dropped;
  for (std::size_t file = 0; file < files_.size(); ++file) {
    const auto& spec = files_[file].spec;
    for (std::size_t device = 0; device < spec.devices.size(); ++device) {
      const auto name = spec.kind + "=" + spec.devices[device].name;
      const auto [at, added] = devices_.try_emplace(name, DeviceLocation{file, device});
      if (added) continue;
      const auto& other = files_[at->second.file];
      if (other.priority == files_[file].priority) {
        conflicts_.push_back({name, other.path, files_[file].path});
        dropped.insert(name);
      } else {
        at->second = {file, device};  // directories come in the order of their priority
      }
    }
  }
  for (const auto& name : dropped) devices_.erase(name);
}

Error Registry::missing(const std::string& name) const {
  for (const auto& conflict : conflicts_) {
    if (conflict.name != name) continue;
    return {
        Errc::NotFound,
        fmt::format("CDI device {} is defined by both {} and {}, so engines ignore both; remove "
                    "one of the files",
                    name, conflict.first, conflict.second)};
  }
  const auto kind = name.substr(0, name.find('=') + 1);
  std::vector<std::string> others;
  for (const auto& [known, place] : devices_) {
    if (known.starts_with(kind)) others.push_back(known.substr(kind.size()));
  }
  std::string text = fmt::format("there is no CDI device {}", name);
  if (!others.empty()) {
    text += fmt::format("; devices of this kind are {}", fmt::join(others, ", "));
  } else if (!rejected_.empty()) {
    text +=
        fmt::format("; {} could not be read: {}", rejected_.front().path, rejected_.front().why);
  }
  return {Errc::NotFound, text + "; run `gantry cdi list`"};
}

Result<model::ContainerEdits> Registry::edits_for(std::span<const std::string> names) const {
  model::ContainerEdits edits;
  std::set<std::size_t> specs;
  std::set<std::string> seen;
  for (const auto& name : names) {
    if (const auto parts = parse_qualified(name); !parts.ok()) return parts.error();
    if (!seen.insert(name).second) continue;
    const auto found = devices_.find(name);
    if (found == devices_.end()) return missing(name);
    const auto& file = files_[found->second.file];
    if (specs.insert(found->second.file).second) {
      add(edits,
          to_container_edits(file.spec.edits, fmt::format("{} of {}", file.spec.kind, file.path)));
    }
    add(edits, to_container_edits(file.spec.devices[found->second.device].edits,
                                  fmt::format("{} of {}", name, file.path)));
  }
  return edits;
}

}  // namespace gantry::cdi
