// SPDX-License-Identifier: Apache-2.0
#include "base/toml_edit/tomlpp.hpp"
#include "doctor/engine/document.hpp"

#include <fmt/format.h>

namespace gantry::doctor {
namespace {

Result<Document> document_from_toml(const toml::node& node, int depth, int& values) {
  if (depth > kMaxDocumentDepth) return Error(Errc::Corrupt, "TOML: nested too deeply");
  if (++values > kMaxDocumentValues) return Error(Errc::Corrupt, "TOML: too many values");
  Document document;
  if (const auto* table = node.as_table()) {
    for (const auto& [key, value] : *table) {
      GANTRY_TRY(Document member, document_from_toml(value, depth + 1, values));
      document.add(std::string(key.str()), std::move(member));
    }
    return document;
  }
  if (const auto* array = node.as_array()) {
    for (const auto& value : *array) {
      GANTRY_TRY(Document item, document_from_toml(value, depth + 1, values));
      document.add(std::move(item));
    }
    return document;
  }
  if (const auto text = node.value<std::string>()) return Document::scalar(*text);
  if (const auto* flag = node.as_boolean()) return Document::scalar(flag->get() ? "true" : "false");
  if (const auto number = node.value<std::int64_t>())
    return Document::scalar(fmt::to_string(*number));
  return document;
}

}  // namespace

Result<Document> parse_toml(std::string_view text) {
  if (text.size() > kMaxDocumentBytes) return Error(Errc::Corrupt, "TOML: too large");
  GANTRY_TRY(const auto table, toml_edit::parse_table(text));
  int values = 0;
  return document_from_toml(table, 0, values);
}

}  // namespace gantry::doctor
