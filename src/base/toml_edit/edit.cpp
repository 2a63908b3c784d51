// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "base/toml_edit/document.hpp"
#include "base/toml_edit/layout_internal.hpp"
#include "base/toml_edit/semantics_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::toml_edit {
namespace {

using detail::Entry;
using detail::Layout;
using detail::Section;

Path path_tail(const Path& path, std::size_t from) {
  return {path.begin() + static_cast<std::ptrdiff_t>(from), path.end()};
}

std::size_t common_prefix_length(const Path& a, const Path& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                  a.begin());
}

struct Splice {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string insert;
};

std::string_view line_ending(std::string_view text) {
  return text.find("\r\n") != std::string_view::npos ? "\r\n" : "\n";
}

bool is_blank_line(std::string_view text, std::size_t begin) {
  const auto end = std::min(text.find('\n', begin), text.size());
  return trim(text.substr(begin, end - begin)).empty();
}

// The end of a section: comments after its last blank line belong to the next header, all others to
// this section.
std::size_t own_end(std::string_view text, const Section& section) {
  if (section.end == text.size()) return section.end;
  std::size_t end = section.content_end;
  for (auto line = section.content_end; line < section.end;) {
    if (is_blank_line(text, line)) end = line;
    line = std::min(text.find('\n', line), text.size() - 1) + 1;
  }
  return end;
}

// The indentation of a new header: that of its nearest sibling.
std::string header_indent(std::string_view text, const Layout& layout, const Path& path) {
  const Section* best = nullptr;
  std::size_t shared = 0;
  for (const auto& section : layout.sections) {
    const auto parts = common_prefix_length(section.path, path);
    if (section.path.empty() || parts == 0) continue;
    if (parts > shared || (parts == shared && section.path.size() == path.size())) {
      best = &section;
      shared = parts;
    }
  }
  if (best == nullptr) return "";
  std::string indent(text.substr(best->begin, best->indent));
  if (path.size() > best->path.size() && !indent.empty()) {
    indent.append(2 * (path.size() - best->path.size()), ' ');
  } else if (indent.size() > 2 * (best->path.size() - std::min(path.size(), best->path.size()))) {
    indent.resize(indent.size() - 2 * (best->path.size() - path.size()));
  }
  return indent;
}

// The header, spelled like its siblings: 'io.containerd...' stays in its quotation marks.
std::string header_text(const Layout& layout, const Path& path) {
  std::vector<std::string> spelling;
  for (const auto& section : layout.sections) {
    const auto parts = common_prefix_length(section.path, path);
    if (parts > spelling.size()) {
      spelling.assign(section.spelling.begin(),
                      section.spelling.begin() + static_cast<std::ptrdiff_t>(parts));
    }
  }
  for (auto i = spelling.size(); i < path.size(); ++i) spelling.push_back(to_string({path[i]}));
  return fmt::format("[{}]", fmt::join(spelling, "."));
}

// After the last section that shares the longest path prefix with it, else at the end.
std::size_t insert_position(std::string_view text, const Layout& layout, const Path& path) {
  std::size_t shared = 0;
  std::size_t place = text.size();
  for (const auto& section : layout.sections) {
    const auto parts = common_prefix_length(section.path, path);
    if (parts == 0 || parts < shared) continue;
    shared = parts;
    place = own_end(text, section);
  }
  return place;
}

Splice new_section(std::string_view text, const Layout& layout, const Path& path,
                   std::string_view raw) {
  const Path table(path.begin(), path.end() - 1);
  const auto eol = line_ending(text);
  const auto place = insert_position(text, layout, table);
  const auto indent = header_indent(text, layout, table);
  const bool indented = !indent.empty();
  std::string out;
  if (place > 0 && text[place - 1] != '\n') out += eol;
  if (place > 0) out += eol;
  out += fmt::format("{}{}{}", indent, header_text(layout, table), eol);
  out += fmt::format("{}{}{} = {}{}", indent, indented ? "  " : "", to_string({path.back()}), raw,
                     eol);
  if (place < text.size() && !is_blank_line(text, place)) out += eol;
  return {place, place, out};
}

// Adds a root key to a file whose root has none: after the comment at the start of the file.
Splice first_root_key(std::string_view text, const Layout& layout, std::string_view line) {
  std::size_t place = 0;
  for (std::size_t at = 0; at < layout.sections.front().end;) {
    const auto next = std::min(text.find('\n', at), text.size() - 1) + 1;
    if (is_blank_line(text, at)) place = next;
    at = next;
  }
  const auto eol = line_ending(text);
  std::string out;
  if (place > 0 && text[place - 1] != '\n') out += eol;
  out += line;
  out += eol;
  if (place < text.size()) out += eol;
  return {place, place, out};
}

// Adds a line after a line of the same table, in the same layout.
Splice after_line(std::string_view text, std::size_t place, std::string_view indent,
                  std::string_view line) {
  const auto eol = line_ending(text);
  const bool open = place > 0 && text[place - 1] != '\n';
  return {place, place, fmt::format("{}{}{}{}", open ? eol : "", indent, line, eol)};
}

Splice into_section(std::string_view text, const Layout& layout, std::size_t index,
                    const Path& path, std::string_view raw) {
  const auto& section = layout.sections[index];
  const auto line = fmt::format("{} = {}", to_string(path_tail(path, section.path.size())), raw);
  const Entry* last = nullptr;
  for (const auto& entry : layout.entries) {
    if (entry.section == index && !entry.in_inline) last = &entry;
  }
  if (last != nullptr) {
    return after_line(text, last->line_end, text.substr(last->line_begin, last->indent), line);
  }
  if (section.path.empty()) return first_root_key(text, layout, line);
  std::string indent(text.substr(section.begin, section.indent));
  if (!indent.empty()) indent += "  ";
  return after_line(text, section.header_end, indent, line);
}

Splice into_inline(const Layout& layout, const Entry& table, const Path& path,
                   std::string_view raw) {
  const auto pair = fmt::format("{} = {}", to_string(path_tail(path, table.path.size())), raw);
  std::size_t last = 0;
  for (const auto& entry : layout.entries) {
    if (entry.in_inline && entry.line_begin > table.value_begin &&
        entry.value_end < table.value_end) {
      last = std::max(last, entry.value_end);
    }
  }
  if (last != 0) return {last, last, ", " + pair};
  return {table.value_begin, table.value_end, "{ " + pair + " }"};
}

// A table that was created by dotted keys cannot get a header: the new key goes next to them.
const Entry* dotted_relative(const Layout& layout, const Path& parent) {
  const Entry* last = nullptr;
  for (const auto& entry : layout.entries) {
    if (!entry.in_inline && layout.sections[entry.section].path.size() < parent.size() &&
        entry.path.size() > parent.size() && detail::starts_with(entry.path, parent)) {
      last = &entry;
    }
  }
  return last;
}

const Entry* entry_above(const Layout& layout, const Path& path) {
  const Entry* deepest = nullptr;
  for (const auto& entry : layout.entries) {
    if (entry.path.size() < path.size() && detail::starts_with(path, entry.path) &&
        (deepest == nullptr || entry.path.size() > deepest->path.size())) {
      deepest = &entry;
    }
  }
  return deepest;
}

bool in_array_of_tables(const Layout& layout, const Path& path) {
  return std::any_of(layout.sections.begin(), layout.sections.end(), [&](const Section& section) {
    return section.array && detail::starts_with(path, section.path);
  });
}

Result<Splice> splice_for(std::string_view text, const Layout& layout, const Path& path,
                          std::string_view raw) {
  for (const auto& entry : layout.entries) {
    if (entry.path == path) return Splice{entry.value_begin, entry.value_end, std::string(raw)};
  }
  if (in_array_of_tables(layout, path)) {
    return Error(Errc::Unsupported, fmt::format("{} is in an array of tables", to_string(path)));
  }
  if (const auto* above = entry_above(layout, path)) {
    if (text[above->value_begin] == '{') return into_inline(layout, *above, path, raw);
    return Error(Errc::Exists, fmt::format("{} is not a table", to_string(above->path)));
  }
  const Path parent(path.begin(), path.end() - 1);
  for (std::size_t i = 0; i < layout.sections.size(); ++i) {
    if (layout.sections[i].path == parent) return into_section(text, layout, i, path, raw);
  }
  if (const auto* relative = dotted_relative(layout, parent)) {
    const auto& section = layout.sections[relative->section];
    const auto line = fmt::format("{} = {}", to_string(path_tail(path, section.path.size())), raw);
    return after_line(text, relative->line_end, text.substr(relative->line_begin, relative->indent),
                      line);
  }
  return new_section(text, layout, path, raw);
}

// Removes an inline member with the comma before it or, if it is the first, with the comma after
// it.
Splice inline_removal(std::string_view text, const Entry& entry) {
  auto begin = entry.line_begin;
  auto end = entry.line_end;
  const auto before = text.find_last_not_of(" \t\r\n", begin - 1);
  if (before != std::string_view::npos && text[before] == ',') return {before, end, ""};
  const auto behind = text.find_first_not_of(" \t\r\n", end);
  if (behind != std::string_view::npos && text[behind] == ',') {
    end = std::min(text.find_first_not_of(" \t", behind + 1), text.size());
  }
  return {begin, end, ""};
}

// Also removes the blank line before it if a blank line or the end of the file follows.
Splice section_removal(std::string_view text, const Section& section) {
  auto begin = section.begin;
  const auto end = section.end == text.size() ? section.content_end : own_end(text, section);
  const bool at_end = trim(text.substr(end)).empty();
  if (begin > 0 && (at_end || is_blank_line(text, end))) {
    const auto line = begin >= 2 ? text.rfind('\n', begin - 2) : std::string_view::npos;
    const auto previous = line == std::string_view::npos ? 0 : line + 1;
    if (is_blank_line(text, previous)) begin = previous;
  }
  return {begin, end, ""};
}

std::optional<Splice> removal(std::string_view text, const Layout& layout, const Path& path) {
  for (const auto& entry : layout.entries) {
    if (!detail::starts_with(entry.path, path)) continue;
    if (entry.in_inline) return inline_removal(text, entry);
    if (!detail::starts_with(layout.sections[entry.section].path, path)) {
      return Splice{entry.line_begin, entry.line_end, ""};
    }
  }
  for (auto it = layout.sections.rbegin(); it != layout.sections.rend(); ++it) {
    if (!it->path.empty() && detail::starts_with(it->path, path)) return section_removal(text, *it);
  }
  return std::nullopt;
}

constexpr int kMaxRemovals = 10'000;

}  // namespace

Status Document::set(const Path& path, std::string_view raw) {
  if (path.empty()) return Error(Errc::Invalid, "the key has no name");
  if (is_table(path)) {
    return Error(Errc::Exists, fmt::format("{} is a table, not a value", to_string(path)));
  }
  GANTRY_TRY(const auto splice, splice_for(text_, *layout_, path, raw));
  auto text = text_;
  text.replace(splice.begin, splice.end - splice.begin, splice.insert);
  GANTRY_CHECK(detail::check_set(text_, path, raw, text));
  *this = Document(std::move(text));
  return {};
}

Status Document::remove(const Path& path) {
  if (path.empty()) return Error(Errc::Invalid, "the key has no name");
  if (in_array_of_tables(*layout_, path)) {
    return Error(Errc::Unsupported, fmt::format("{} is in an array of tables", to_string(path)));
  }
  Document changed = *this;
  for (int i = 0; i < kMaxRemovals; ++i) {
    const auto splice = removal(changed.text_, *changed.layout_, path);
    if (!splice) break;
    auto text = changed.text_;
    text.erase(splice->begin, splice->end - splice->begin);
    changed = Document(std::move(text));
  }
  GANTRY_CHECK(detail::check_removed(text_, path, changed.text_));
  *this = std::move(changed);
  return {};
}

}  // namespace gantry::toml_edit
