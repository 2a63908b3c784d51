// SPDX-License-Identifier: Apache-2.0
// The journal of one engine: /var/lib/gantry/engines/ENGINE/journal.json and the contents beside
// it.
#pragma once

#include "container/engines/journal.hpp"

namespace gantry::engines {

struct FileRecord {
  std::string path;
  Format format = Format::Other;
  unsigned mode = 0644;
  std::optional<std::string> before;  // contents
  std::vector<std::string> written;   // contents that we wrote, the last one last
  std::vector<KeyChange> keys;
};

struct Record {
  Engine engine = Engine::Docker;
  std::vector<FileRecord> files;
  std::vector<std::string> directories;  // that we made, outer ones first

  FileRecord* find(std::string_view path);
};

std::string journal_of(Engine engine);  // the directory, inside the root

// nullopt when there is none.
Result<std::optional<Record>> load_record(const sys::Host& host, Engine engine);

// Contents first, journal.json last: that is the moment from which the record counts.
Status save_record(const sys::Host& host, const Record& record, Files& files);

Status remove_record(const sys::Host& host, Engine engine, Files& files);

// A file without our keys, as far as they still have our values; what is left alone is noted.
Result<std::string> without_keys(const FileRecord& file, const std::string& text,
                                 std::vector<std::string>& notes);

}  // namespace gantry::engines
