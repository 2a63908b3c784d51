// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "container/engines/change_plan_internal.hpp"
#include "container/engines/journal_file_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::engines {
namespace {

constexpr std::size_t kContentLimit = std::size_t{8} << 20;
constexpr std::array kFormats{std::pair{Format::Toml, "toml"}, std::pair{Format::Json, "json"},
                              std::pair{Format::Other, "other"}};
constexpr std::array kKinds{
    std::pair{KeyChange::Kind::Value, "value"}, std::pair{KeyChange::Kind::Table, "table"},
    std::pair{KeyChange::Kind::Element, "element"}, std::pair{KeyChange::Kind::Block, "block"}};

template <class Table>
auto value_of(const Table& table, std::string_view name) -> decltype(table[0].first) {
  for (const auto& [value, word] : table) {
    if (word == name) return value;
  }
  return table.back().first;
}

void write_key(json::Writer& out, const KeyChange& key) {
  out.object([&] {
    out.member("kind", name_in_table(kKinds, key.kind));
    out.array("path", key.path);
    out.member("before", key.before);
    out.member("after", key.after);
  });
}

std::string before_name(std::size_t file) {
  return fmt::format("{}.before", file);
}

std::string written_name(std::size_t file, std::size_t version) {
  return fmt::format("{}.written.{}", file, version);
}

void write_file(json::Writer& out, const JournalFile& file) {
  out.object([&] {
    out.member("path", file.path);
    out.member("format", name_in_table(kFormats, file.format));
    out.member("mode", file.mode);
    out.member("existed", file.before.has_value());
    out.member("written", file.written.size());
    out.rows("keys", file.keys, [&](const KeyChange& key) { write_key(out, key); });
  });
}

std::string record_text(const EngineJournal& record) {
  json::Writer out(json::Layout::Rows);
  out.object([&] {
    out.member("version", 1);
    out.member("engine", to_string(record.engine));
    out.array("directories", record.directories);
    out.rows("files", record.files, [&](const JournalFile& file) { write_file(out, file); });
  });
  return out.text() + "\n";
}

KeyChange read_key(json::Value value) {
  KeyChange key{.kind = value_of(kKinds, value["kind"].string().value_or("")),
                .path = value["path"].strings(),
                .before = value["before"].string(),
                .after = value["after"].string().value_or("")};
  return key;
}

Result<JournalFile> read_file(const sys::Host& host, const std::string& directory,
                              json::Value value, std::size_t index) {
  JournalFile file{.path = value["path"].string().value_or(""),
                   .format = value_of(kFormats, value["format"].string().value_or("")),
                   .mode = static_cast<unsigned>(value["mode"].u64().value_or(0644) & 07777)};
  if (!file.path.starts_with('/')) return Error(Errc::Corrupt, "a file without a path");
  if (value["existed"].boolean().value_or(false)) {
    GANTRY_TRY(file.before, host.read(directory + "/" + before_name(index), kContentLimit));
  }
  const auto count = value["written"].u64().value_or(0);
  for (std::size_t i = count - std::min(count, kVersionsKept); i < count; ++i) {
    GANTRY_TRY(auto text,
               host.read(fmt::format("{}/{}", directory, written_name(index, i)), kContentLimit));
    file.written.push_back(std::move(text));
  }
  for (const auto key : value["keys"]) file.keys.push_back(read_key(key));
  return file;
}

Result<EngineJournal> read_record(const sys::Host& host, const std::string& directory,
                                  const json::Document& document, Engine engine) {
  if (document["version"].u64() != 1) {
    return Error(Errc::Unsupported, "written by another version of gantry");
  }
  EngineJournal record{.engine = engine, .directories = document["directories"].strings()};
  for (const auto value : document["files"]) {
    if (record.files.size() >= kFilesKept) return Error(Errc::Corrupt, "too many files");
    GANTRY_TRY(auto file, read_file(host, directory, value, record.files.size()));
    record.files.push_back(std::move(file));
  }
  return record;
}

template <class Files>
auto find_file(Files& files, std::string_view path) -> decltype(files.data()) {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.path == path; });
  return found == files.end() ? nullptr : &*found;
}

}  // namespace

JournalFile* EngineJournal::find(std::string_view path) {
  return find_file(files, path);
}

const JournalFile* EngineJournal::find(std::string_view path) const {
  return find_file(files, path);
}

std::string journal_directory(Engine engine) {
  return fmt::format("{}/{}", kJournalsDirectory, to_string(engine));
}

Result<std::optional<EngineJournal>> load_journal(const sys::Host& host, Engine engine) {
  const auto directory = journal_directory(engine);
  const auto path = directory + "/journal.json";
  auto text = host.read(path, kContentLimit);
  if (!text.ok() && text.error().code() == Errc::NotFound) return std::optional<EngineJournal>();
  if (!text.ok()) return std::move(text).error();
  GANTRY_TRY(const auto document, json::Document::parse(*std::move(text)).in(path));
  GANTRY_TRY(auto record, read_record(host, directory, document, engine).in(path));
  return std::optional(std::move(record));
}

Status save_journal(const sys::Host& host, const EngineJournal& record, FileWriter& files) {
  const auto directory = host.outside(journal_directory(record.engine));
  GANTRY_CHECK(files.make_directories(directory));
  constexpr unsigned kSecret = 0600;  // configurations can contain passwords of registries
  for (std::size_t i = 0; i < record.files.size(); ++i) {
    const auto& file = record.files[i];
    if (file.before) {
      GANTRY_CHECK(
          files.replace(fmt::format("{}/{}", directory, before_name(i)), *file.before, kSecret));
    }
    for (std::size_t version = 0; version < file.written.size(); ++version) {
      GANTRY_CHECK(files.replace(fmt::format("{}/{}", directory, written_name(i, version)),
                                 file.written[version], kSecret));
    }
  }
  return files.replace(directory + "/journal.json", record_text(record), kSecret);
}

Status remove_journal(const sys::Host& host, Engine engine, FileWriter& files) {
  const auto inside = journal_directory(engine);
  const auto directory = host.outside(inside);
  // Removed first: the other files are useless without it.
  GANTRY_CHECK(files.remove(fmt::format("{}/journal.json", directory)));
  if (const auto names = host.list(inside); names.ok()) {
    for (const auto& name : *names)
      GANTRY_CHECK(files.remove(fmt::format("{}/{}", directory, name)));
  }
  return files.remove(directory);
}

}  // namespace gantry::engines
