// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "base/json/patch.hpp"
#include "base/toml_edit/document.hpp"
#include "container/engines/journal_file_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::engines {
namespace {

std::string left_alone(const JournalFile& file, const KeyChange& key) {
  return fmt::format("{}: {} now has another value and is not changed", file.path,
                     fmt::join(key.path, "."));
}

Status undo_toml_key(toml_edit::Document& document, const JournalFile& file, const KeyChange& key,
                     std::vector<std::string>& notes) {
  switch (key.kind) {
    case KeyChange::Kind::Table:
      if (document.members(key.path).empty()) return document.remove(key.path);
      return {};
    case KeyChange::Kind::Element: {
      auto texts = document.strings(key.path);
      if (!texts || std::erase(*texts, key.after) == 0) return {};
      return document.set(key.path, toml_edit::quote(*texts));
    }
    case KeyChange::Kind::Value: break;
    case KeyChange::Kind::Block: return {};
  }
  const auto now = document.raw(key.path);
  if (!now) return {};
  if (now == key.after) {
    return key.before ? document.set(key.path, *key.before) : document.remove(key.path);
  }
  // For a list with our element, the change of that element is undone instead.
  const bool list = std::any_of(file.keys.begin(), file.keys.end(), [&](const KeyChange& other) {
    return other.kind == KeyChange::Kind::Element && other.path == key.path;
  });
  if (!list) notes.push_back(left_alone(file, key));
  return {};
}

Result<std::string> without_toml_keys(const JournalFile& file, const std::string& text,
                                      std::vector<std::string>& notes) {
  GANTRY_TRY(auto document, toml_edit::Document::parse(text));
  for (auto key = file.keys.rbegin(); key != file.keys.rend(); ++key) {
    GANTRY_CHECK(undo_toml_key(document, file, *key, notes));
  }
  return document.text();
}

json::Value at(const json::Document& document, const std::vector<std::string>& path) {
  auto value = document.root();
  for (const auto& part : path) value = value[part];
  return value;
}

// Removes one key at a time, so that a table becomes empty once its members are removed.
Result<std::string> without_json_keys(const JournalFile& file, std::string text,
                                      std::vector<std::string>& notes) {
  for (auto key = file.keys.rbegin(); key != file.keys.rend(); ++key) {
    GANTRY_TRY(const auto document, json::Document::parse(text, json::Encoding::Any));
    const auto value = at(document, key->path);
    const json::Path path(key->path.begin(), key->path.end());
    if (!value) continue;
    json::Patch patch;
    if (key->kind == KeyChange::Kind::Table) {
      if (!value.is(json::Kind::Object) || value.size() != 0) continue;
      patch.remove(path);
    } else if (value.raw() != key->after) {
      notes.push_back(left_alone(file, *key));
      continue;
    } else if (key->before) {
      patch.set(path, *key->before);
    } else {
      patch.remove(path);
    }
    GANTRY_TRY(text, patch.apply(document));
  }
  return text;
}

Result<std::string> without_blocks(const JournalFile& file, std::string text,
                                   std::vector<std::string>& notes) {
  bool any = false;
  for (const auto& key : file.keys) {
    const auto where = text.find(key.after);
    if (key.kind != KeyChange::Kind::Block || where == std::string::npos) continue;
    text.erase(where, key.after.size());
    any = true;
  }
  if (!any) notes.push_back(fmt::format("{}: was changed since and is left unchanged", file.path));
  return text;
}

}  // namespace

Result<std::string> remove_keys(const JournalFile& file, const std::string& text,
                                std::vector<std::string>& notes) {
  switch (file.format) {
    case Format::Toml: return without_toml_keys(file, text, notes).in(file.path);
    case Format::Json: return without_json_keys(file, text, notes).in(file.path);
    case Format::Other: break;
  }
  return without_blocks(file, text, notes);
}

}  // namespace gantry::engines
