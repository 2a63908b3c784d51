// SPDX-License-Identifier: Apache-2.0
// The journal of one engine: /var/lib/gantry/engines/ENGINE/journal.json and the contents beside
// it.
#pragma once

#include "container/engines/journal.hpp"

namespace gantry::engines {

struct JournalFile {
  std::string path;
  Format format = Format::Other;
  unsigned mode = 0644;
  std::optional<std::string> before;  // contents
  std::vector<std::string> written;   // contents that we wrote, the last one last
  std::vector<KeyChange> keys;
};

struct EngineJournal {
  Engine engine = Engine::Docker;
  std::vector<JournalFile> files;
  std::vector<std::string> directories;  // that we made, outer ones first

  JournalFile* find(std::string_view path);
};

std::string journal_directory(Engine engine);  // the directory, inside the root

// nullopt when there is none.
Result<std::optional<EngineJournal>> load_journal(const sys::Host& host, Engine engine);

// Contents first, journal.json last: that is the moment from which the record counts.
Status save_journal(const sys::Host& host, const EngineJournal& record, FileWriter& files);

Status remove_journal(const sys::Host& host, Engine engine, FileWriter& files);

// A file without our keys, as far as they still have our values; what is left alone is noted.
Result<std::string> remove_keys(const JournalFile& file, const std::string& text,
                                std::vector<std::string>& notes);

}  // namespace gantry::engines
