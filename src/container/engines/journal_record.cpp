// SPDX-License-Identifier: Apache-2.0
// Writes the record of a change to the journal, before the change itself.
#include "base/core/text.hpp"
#include "container/engines/change_plan_internal.hpp"
#include "container/engines/journal_file_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::engines {
namespace {

bool has_text(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

void note_new_directories(const sys::Host& host, const std::string& path, EngineJournal& record) {
  std::vector<std::string> missing;
  for (auto parent = parent_directory(path); parent != "/" && !host.exists(parent);
       parent = parent_directory(parent)) {
    missing.emplace_back(parent);
  }
  for (auto it = missing.rbegin(); it != missing.rend(); ++it) {
    if (std::find(record.directories.begin(), record.directories.end(), *it) ==
        record.directories.end()) {
      record.directories.push_back(*it);
    }
  }
}

// A key that we set twice gets back its value from before the first time.
void add_keys(std::vector<KeyChange>& keys, const std::vector<KeyChange>& more) {
  for (const auto& key : more) {
    const auto known = std::find_if(keys.begin(), keys.end(), [&](const KeyChange& other) {
      return other.kind == key.kind && other.path == key.path &&
             (key.kind == KeyChange::Kind::Value || other.after == key.after);
    });
    if (known == keys.end()) {
      keys.push_back(key);
    } else {
      known->after = key.after;
    }
  }
}

// A new record. If the partner wrote the file, its text and its directories are not the original.
void add_file(const sys::Host& host, const std::string& path, const FileChange& change,
              const EngineJournal* partner, EngineJournal& record) {
  const auto info = host.info(path);
  record.files.push_back({.path = path,
                          .format = change.format,
                          .mode = info.ok() ? info->mode : 0644,
                          .before = change.before,
                          .written = {change.after},
                          .keys = change.keys});
  const auto* theirs = partner == nullptr ? nullptr : partner->find(path);
  if (theirs == nullptr || !change.before || !has_text(theirs->written, *change.before)) return;
  record.files.back().before = theirs->before;
  for (const auto& directory : partner->directories) {
    if (path.starts_with(directory + "/")) record.directories.push_back(directory);
  }
}

}  // namespace

// The real path of a file: follows links inside the root, so that a configuration that is a link
// stays a link.
std::string real_place(const sys::Host& host, const std::string& path) {
  if (const auto resolved = host.resolve(path); resolved.ok()) return *resolved;
  const std::string parent(parent_directory(path));
  if (parent == "/" || parent == path) return path;
  return join_path(real_place(host, parent), base_name(path));
}

Result<std::optional<EngineJournal>> load_partner(const sys::Host& host, Engine engine) {
  if (engine != Engine::Crio && engine != Engine::Podman) return std::optional<EngineJournal>();
  const auto partner = engine == Engine::Crio ? Engine::Podman : Engine::Crio;
  return load_journal(host, partner).in(fmt::format("the journal of {}", to_string(partner)));
}

Result<bool> joins_partner(const sys::Host& host, const ChangePlan& plan) {
  GANTRY_TRY(const auto partner, load_partner(host, plan.engine));
  if (!partner) return false;
  GANTRY_TRY(const auto own, load_journal(host, plan.engine).in("the journal"));
  return std::any_of(plan.files.begin(), plan.files.end(), [&](const FileChange& change) {
    const auto path = real_place(host, change.path);
    return partner->find(path) != nullptr && (!own || own->find(path) == nullptr);
  });
}

Status record_change(const sys::Host& host, const FileChange& change,
                     const std::optional<EngineJournal>& partner, EngineJournal& record) {
  const auto path = real_place(host, change.path);
  const auto* theirs = partner ? partner->find(path) : nullptr;
  if (!change.changes() && theirs == nullptr) return {};
  note_new_directories(host, path, record);
  auto* known = record.find(path);
  if (known == nullptr) {
    add_file(host, path, change, partner ? &*partner : nullptr, record);
    return {};
  }
  const auto& now = change.before;
  const bool ours = now && (has_text(known->written, *now) ||
                            (theirs != nullptr && has_text(theirs->written, *now)));
  if (!ours && now != known->before) {
    // The file was changed since: a later undo restores what an undo would leave now.
    std::vector<std::string> ignored;
    if (now) {
      GANTRY_TRY(known->before, remove_keys(*known, *now, ignored));
    } else {
      known->before.reset();
    }
    known->written.clear();
  }
  std::erase(known->written, change.after);
  known->written.push_back(change.after);
  if (known->written.size() > kVersionsKept) known->written.erase(known->written.begin());
  add_keys(known->keys, change.keys);
  return {};
}

}  // namespace gantry::engines
