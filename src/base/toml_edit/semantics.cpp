// SPDX-License-Identifier: Apache-2.0
#include "base/toml_edit/semantics_internal.hpp"
#include "base/toml_edit/tomlpp.hpp"

#include <fmt/format.h>

namespace gantry::toml_edit {
namespace {

Result<toml::table> parse_value(std::string_view raw) {
  GANTRY_TRY(auto table, parse_table(fmt::format("v = {}", raw)));
  if (table.size() != 1) return Error(Errc::Invalid, fmt::format("`{}` is not one value", raw));
  return table;
}

void prune(toml::table& table) {
  for (auto it = table.begin(); it != table.end();) {
    auto* below = it->second.as_table();
    if (below != nullptr) prune(*below);
    it = below != nullptr && below->empty() ? table.erase(it) : std::next(it);
  }
}

// The table that holds the path's last part; nullptr when there is none.
toml::table* parent_of(toml::table& root, const Path& path, bool make) {
  auto* table = &root;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    if (make && !table->contains(path[i])) table->insert(path[i], toml::table{});
    auto* next = table->get(path[i]);
    table = next == nullptr ? nullptr : next->as_table();
    if (table == nullptr) return nullptr;
  }
  return table;
}

Result<toml::table> parse_checked(std::string_view text) {
  toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return Error(Errc::Corrupt, fmt::format("TOML: line {}: {}", parsed.error().source().begin.line,
                                            parsed.error().description()));
  }
  return std::move(parsed).table();
}

}  // namespace

void throw_parser_assertion() {
  throw ParserAssertion{};
}

Result<toml::table> parse_table(std::string_view text) {
  GANTRY_CHECK(check_bounds(text));
  try {
    return parse_checked(text);
  } catch (const ParserAssertion&) {
    return Error(Errc::Corrupt, "TOML: a bracket or key is in a place where none is allowed");
  }
}

Result<Path> parse_path(std::string_view text) {
  const auto bad = [&] { return Error(Errc::Invalid, fmt::format("`{}` is not a key", text)); };
  if (text.empty() || text.find_first_of("\n=#") != std::string_view::npos) return bad();
  auto table = parse_table(fmt::format("{} = 1", text));
  if (!table.ok()) return bad();
  Path path;
  for (const toml::table* at = &*table; at != nullptr && !at->empty();) {
    path.emplace_back(at->begin()->first.str());
    at = at->begin()->second.as_table();
  }
  return path;
}

namespace detail {

Status check_syntax(std::string_view text) {
  GANTRY_TRY([[maybe_unused]] const auto table, parse_table(text));
  return {};
}

std::optional<std::string> as_string(std::string_view raw) {
  auto table = parse_value(raw);
  const auto* value = table.ok() ? table->get("v")->as_string() : nullptr;
  return value == nullptr ? std::nullopt : std::optional(value->get());
}

std::optional<std::int64_t> as_integer(std::string_view raw) {
  auto table = parse_value(raw);
  const auto* value = table.ok() ? table->get("v")->as_integer() : nullptr;
  return value == nullptr ? std::nullopt : std::optional(value->get());
}

std::optional<std::vector<std::string>> as_strings(std::string_view raw) {
  auto table = parse_value(raw);
  const auto* array = table.ok() ? table->get("v")->as_array() : nullptr;
  if (array == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  for (const auto& item : *array) {
    if (!item.is_string()) return std::nullopt;
    texts.push_back(item.as_string()->get());
  }
  return texts;
}

Status check_set(std::string_view before, const Path& path, std::string_view raw,
                 std::string_view after) {
  GANTRY_TRY(auto expected, parse_table(before));
  GANTRY_TRY(const auto value, parse_value(raw));
  GANTRY_TRY(const auto got, parse_table(after).in("after the change"));
  auto* parent = parent_of(expected, path, true);
  if (parent != nullptr) parent->insert_or_assign(path.back(), *value.get("v"));
  if (parent == nullptr || expected != got) {
    return Error(Errc::Internal,
                 fmt::format("setting {} would also change something else", to_string(path)));
  }
  return {};
}

Status check_removed(std::string_view before, const Path& path, std::string_view after) {
  GANTRY_TRY(auto expected, parse_table(before));
  GANTRY_TRY(auto got, parse_table(after).in("after the change"));
  if (auto* parent = parent_of(expected, path, false)) parent->erase(path.back());
  prune(expected);
  prune(got);
  if (expected != got) {
    return Error(Errc::Internal,
                 fmt::format("removing {} would also change something else", to_string(path)));
  }
  return {};
}

}  // namespace detail
}  // namespace gantry::toml_edit
