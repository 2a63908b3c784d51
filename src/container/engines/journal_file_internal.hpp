// SPDX-License-Identifier: Apache-2.0
// The journal of one engine: /var/lib/gantry/engines/ENGINE/journal.json, and the file contents in
// the same directory.
#pragma once

#include "container/engines/journal.hpp"

namespace gantry::engines {

// How many of our own texts of a file are kept, to recognise the file. A crash leaves the newest or
// the one before.
constexpr std::size_t kVersionsKept = 8;
constexpr std::size_t kFilesKept = 1'024;  // of one engine: every drop-in that a run wrote

struct JournalFile {
  std::string path;
  Format format = Format::Other;
  unsigned mode = 0644;
  std::optional<std::string> before;  // contents
  std::vector<std::string> written;   // contents that we wrote, the latest one last
  std::vector<KeyChange> keys;
};

struct EngineJournal {
  Engine engine = Engine::Docker;
  std::vector<JournalFile> files;
  std::vector<std::string> directories;  // that we created, outer ones first

  JournalFile* find(std::string_view path);
  const JournalFile* find(std::string_view path) const;
};

// The real path of a file: follows links inside the root, so that a configuration that is a link
// stays a link.
std::string real_place(const sys::Host& host, const std::string& path);

std::string journal_directory(Engine engine);  // the directory, inside the root

// nullopt if there is no journal.
Result<std::optional<EngineJournal>> load_journal(const sys::Host& host, Engine engine);

// Writes the contents first and journal.json last: the record is valid from then on.
Status save_journal(const sys::Host& host, const EngineJournal& record, FileWriter& files);

Status remove_journal(const sys::Host& host, Engine engine, FileWriter& files);

// podman and CRI-O read the same hooks, so one file can be in both journals; it goes when the last
// of them is undone. nullopt: no journal, or an engine that shares no file with another.
Result<std::optional<EngineJournal>> load_partner(const sys::Host& host, Engine engine);

// Returns true if a file of the plan is in the partner's journal and not yet in that of the engine.
Result<bool> joins_partner(const sys::Host& host, const ChangePlan& plan);

// Adds to `record` what must be on disk before `change` is written.
Status record_change(const sys::Host& host, const FileChange& change,
                     const std::optional<EngineJournal>& partner, EngineJournal& record);

// Removes our keys from a file if they still have our values; adds a note for each key that stays.
Result<std::string> remove_keys(const JournalFile& file, const std::string& text,
                                std::vector<std::string>& notes);

}  // namespace gantry::engines
