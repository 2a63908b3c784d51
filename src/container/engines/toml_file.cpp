// SPDX-License-Identifier: Apache-2.0
#include "container/engines/change_plan_internal.hpp"

#include <algorithm>

namespace gantry::engines {

toml_edit::Path operator/(toml_edit::Path path, std::string_view part) {
  path.emplace_back(part);
  return path;
}

Result<TomlFile> TomlFile::open(const sys::Host& host, std::string path) {
  GANTRY_TRY(auto text, read_optional(host, path));
  return from(std::move(path), std::move(text));
}

Result<TomlFile> TomlFile::from(std::string path, std::optional<std::string> text) {
  GANTRY_TRY(auto document, toml_edit::Document::parse(text.value_or("")).in(path));
  return TomlFile(std::move(path), std::move(text), std::move(document));
}

Status TomlFile::set(const toml_edit::Path& path, std::string_view raw) {
  const auto before = document_.raw(path);
  if (before == raw) return {};
  std::vector<KeyChange> tables;
  for (auto table = path; table.size() > 1;) {
    table.pop_back();
    if (document_.has(table)) break;
    tables.push_back({.kind = KeyChange::Kind::Table, .path = table});
  }
  GANTRY_CHECK(document_.set(path, raw).in(path_));
  // Undo runs in reverse order: first the values, then the empty tables, inner ones first.
  keys_.insert(keys_.end(), tables.rbegin(), tables.rend());
  keys_.push_back({.path = path, .before = before, .after = std::string(raw)});
  return {};
}

Status TomlFile::set_text(const toml_edit::Path& path, std::string_view text) {
  if (document_.string(path) == text) return {};  // compares the value, not its quotes
  return set(path, toml_edit::quote(text));
}

Status TomlFile::add_to_list(const toml_edit::Path& path, const std::string& text) {
  auto texts = document_.strings(path);
  if (document_.has(path) && !texts) {
    return Error(Errc::Exists, toml_edit::to_string(path) + " is not a list of strings").in(path_);
  }
  if (!texts) texts.emplace();
  if (std::find(texts->begin(), texts->end(), text) != texts->end()) return {};
  texts->push_back(text);
  GANTRY_CHECK(set(path, toml_edit::quote(*texts)));
  keys_.push_back({.kind = KeyChange::Kind::Element, .path = path, .after = text});
  return {};
}

FileChange TomlFile::change() && {
  return {.path = std::move(path_),
          .format = Format::Toml,
          .before = std::move(before_),
          .after = document_.text(),
          .keys = std::move(keys_)};
}

Status copy_values(const toml_edit::Document& source, const toml_edit::Path& from, TomlFile& file,
                   const toml_edit::Path& to, const std::vector<toml_edit::Path>& except) {
  // Values before tables, as TOML requires.
  const auto names = source.members(from);
  for (const bool tables : {false, true}) {
    for (const auto& name : names) {
      const auto path = from / name;
      if (source.is_table(path) != tables) continue;
      if (std::find(except.begin(), except.end(), path) != except.end()) continue;
      if (tables) {
        GANTRY_CHECK(copy_values(source, path, file, to / name, except));
      } else if (const auto raw = source.raw(path)) {
        GANTRY_CHECK(file.set(to / name, *raw));
      }
    }
  }
  return {};
}

}  // namespace gantry::engines
