// SPDX-License-Identifier: Apache-2.0
#include "base/toml_edit/tomlpp.hpp"
#include "container/config/keys.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::config {
namespace {

constexpr std::size_t kMaxWarnings = 50;

Error at_line(const toml::node& node, std::string_view text) {
  return Error(Errc::Invalid, fmt::format("line {}: {}", node.source().begin.line, text));
}

struct Reader {
  const toml::node& node;
  Settings& settings;

  Status operator()(Field<bool> field) const {
    if (!node.is_boolean()) return at_line(node, "must be true or false");
    field(settings) = node.as_boolean()->get();
    return {};
  }
  Status operator()(Field<std::string> field) const {
    if (!node.is_string()) return at_line(node, "must be a string in quotation marks");
    field(settings) = node.as_string()->get();
    return {};
  }
  Status operator()(Field<std::int64_t> field) const {
    if (!node.is_integer()) return at_line(node, "must be a whole number");
    field(settings) = node.as_integer()->get();
    return {};
  }
  Status operator()(Field<std::vector<std::string>> field) const {
    const auto* array = node.as_array();
    if (array == nullptr) return at_line(node, "must be a list: [\"a\", \"b\"]");
    std::vector<std::string> list;
    for (const auto& item : *array) {
      if (!item.is_string()) return at_line(item, "must be a string in quotation marks");
      list.push_back(item.as_string()->get());
    }
    field(settings) = std::move(list);
    return {};
  }
};

bool is_table_of_ours(std::string_view name) {
  return std::any_of(keys().begin(), keys().end(), [&](const Key& key) {
    return key.name.starts_with(name) && key.name.substr(name.size()).starts_with('.');
  });
}

Status unknown(const toml::node& node, const std::string& name, LoadedSettings& loaded) {
  const auto line = node.source().begin.line;
  if (name == "gantry" || name.starts_with("gantry.")) {
    return Error(Errc::Invalid,
                 fmt::format("line {}: there is no key {}; `gantry config show` lists all keys",
                             line, name));
  }
  if (loaded.warnings.size() < kMaxWarnings) {
    loaded.warnings.push_back(fmt::format("line {}: {} is unknown and has no effect", line, name));
  }
  return {};
}

Status read_table(const toml::table& table, const std::string& prefix, LoadedSettings& loaded) {
  for (const auto& [key, node] : table) {
    const auto name = prefix + std::string(key.str());
    if (const auto* known = find_key(name); known != nullptr) {
      GANTRY_CHECK(std::visit(Reader{node, loaded.settings}, known->field).in(name));
      auto allowed = check_allowed_values(*known, loaded.settings);
      if (!allowed.ok()) return at_line(node, allowed.error().text());
      loaded.named.push_back(name);
    } else if (node.is_table() && is_table_of_ours(name)) {
      GANTRY_CHECK(read_table(*node.as_table(), name + '.', loaded));
    } else {
      GANTRY_CHECK(unknown(node, name, loaded));
    }
  }
  return {};
}

}  // namespace

Result<LoadedSettings> parse(std::string_view text) {
  if (text.size() > kMaxConfigBytes) return Error(Errc::Corrupt, "the configuration is too large");
  GANTRY_TRY(const auto table, toml_edit::parse_table(text));
  LoadedSettings loaded;
  GANTRY_CHECK(read_table(table, "", loaded));
  return loaded;
}

}  // namespace gantry::config
