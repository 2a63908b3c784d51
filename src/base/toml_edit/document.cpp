// SPDX-License-Identifier: Apache-2.0
#include "base/toml_edit/document.hpp"

#include "base/core/text.hpp"
#include "base/toml_edit/layout_internal.hpp"
#include "base/toml_edit/semantics_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::toml_edit {
namespace {

bool is_bare(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

const detail::Entry* find(const detail::Layout& layout, const Path& path) {
  for (const auto& entry : layout.entries) {
    if (entry.path == path) return &entry;
  }
  return nullptr;
}

}  // namespace

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string quote(const std::vector<std::string>& texts) {
  std::string out;
  for (const auto& text : texts) out += fmt::format("{}{}", out.empty() ? "" : ", ", quote(text));
  return "[" + out + "]";
}

std::string to_string(const Path& path) {
  std::string out;
  for (const auto& part : path) {
    if (!out.empty()) out += '.';
    out += is_bare(part) ? part : quote(part);
  }
  return out;
}

Result<Document> Document::parse(std::string text) {
  GANTRY_CHECK(detail::check_syntax(text));
  return Document(std::move(text));
}

Document::Document(std::string text)
    : text_(std::move(text)), layout_(std::make_unique<detail::Layout>(detail::scan(text_))) {}
Document::Document(const Document& other)
    : text_(other.text_), layout_(std::make_unique<detail::Layout>(*other.layout_)) {}
Document& Document::operator=(const Document& other) {
  if (this != &other) *this = Document(other);
  return *this;
}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

std::optional<std::string> Document::raw(const Path& path) const {
  const auto* entry = find(*layout_, path);
  if (entry == nullptr) return std::nullopt;
  return text_.substr(entry->value_begin, entry->value_end - entry->value_begin);
}

bool Document::is_table(const Path& path) const {
  if (const auto* entry = find(*layout_, path); entry != nullptr) {
    return text_[entry->value_begin] == '{';
  }
  return has(path);
}

bool Document::has(const Path& path) const {
  const auto below = [&](const auto& item) { return detail::starts_with(item.path, path); };
  return path.empty() || std::any_of(layout_->entries.begin(), layout_->entries.end(), below) ||
         std::any_of(layout_->sections.begin() + 1, layout_->sections.end(), below);
}

std::vector<std::string> Document::members(const Path& path) const {
  std::vector<std::string> names;
  const auto add = [&](const auto& item) {
    if (item.path.size() > path.size() && detail::starts_with(item.path, path)) {
      names.push_back(item.path[path.size()]);
    }
  };
  std::for_each(layout_->entries.begin(), layout_->entries.end(), add);
  std::for_each(layout_->sections.begin(), layout_->sections.end(), add);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::optional<std::string> Document::string(const Path& path) const {
  const auto value = raw(path);
  return value ? detail::as_string(*value) : std::nullopt;
}

std::optional<std::int64_t> Document::integer(const Path& path) const {
  const auto value = raw(path);
  return value ? detail::as_integer(*value) : std::nullopt;
}

std::optional<std::vector<std::string>> Document::strings(const Path& path) const {
  const auto value = raw(path);
  return value ? detail::as_strings(*value) : std::nullopt;
}

}  // namespace gantry::toml_edit
