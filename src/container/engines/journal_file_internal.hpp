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
};

std::string journal_directory(Engine engine);  // the directory, inside the root

// nullopt if there is no journal.
Result<std::optional<EngineJournal>> load_journal(const sys::Host& host, Engine engine);

// Writes the contents first and journal.json last: the record is valid from then on.
Status save_journal(const sys::Host& host, const EngineJournal& record, FileWriter& files);

Status remove_journal(const sys::Host& host, Engine engine, FileWriter& files);

// Removes our keys from a file if they still have our values; adds a note for each key that stays.
Result<std::string> remove_keys(const JournalFile& file, const std::string& text,
                                std::vector<std::string>& notes);

}  // namespace gantry::engines
