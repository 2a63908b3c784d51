// SPDX-License-Identifier: Apache-2.0
// Finds sections and values. The text has passed toml++, so this code reports no errors; every loop
// still stops at the end of the text.
#include "base/toml_edit/layout_internal.hpp"

#include <algorithm>

namespace gantry::toml_edit::detail {
namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Layout run() {
    layout_.sections.emplace_back();
    while (skip_blank(), at_ < text_.size()) {
      const auto line = line_begin(at_);
      if (text_[at_] == '[') {
        header(line);
      } else {
        key_value(line);
      }
    }
    finish();
    return std::move(layout_);
  }

 private:
  bool more() const { return at_ < text_.size(); }
  char peek() const { return more() ? text_[at_] : '\0'; }
  bool ahead(std::string_view word) const { return text_.substr(at_).starts_with(word); }

  std::size_t line_begin(std::size_t at) const {
    const auto newline = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
    return newline == std::string_view::npos ? 0 : newline + 1;
  }

  void skip_spaces() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }

  void skip_line() {
    const auto newline = text_.find('\n', at_);
    at_ = newline == std::string_view::npos ? text_.size() : newline + 1;
  }

  void skip_blank() {  // white space, line ends, comments
    while (more()) {
      const char c = text_[at_];
      if (c == '#') {
        skip_line();
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
      } else if (at_ == 0 && ahead("\xef\xbb\xbf")) {
        at_ = 3;
      } else {
        return;
      }
    }
  }

  void skip_string() {
    for (const std::string_view mark : {"\"\"\"", "'''", "\"", "'"}) {
      if (!ahead(mark)) continue;
      at_ += mark.size();
      while (more() && !ahead(mark)) at_ += (mark[0] == '"' && peek() == '\\') ? 2 : 1;
      at_ = std::min(at_ + mark.size(), text_.size());
      // """a"""" : up to two quotation marks may stand before the closing three
      while (mark.size() == 3 && peek() == mark[0]) ++at_;
      return;
    }
  }

  // One part of a key: decoded, and as written.
  std::pair<std::string, std::string> key_part() {
    const auto begin = at_;
    if (peek() == '"' || peek() == '\'') {
      skip_string();
    } else {
      while (more() && std::string_view(" \t\r\n.=]").find(peek()) == std::string_view::npos) ++at_;
    }
    const auto written = std::string(text_.substr(begin, at_ - begin));
    auto decoded = parse_path(written);
    return {decoded.ok() && decoded->size() == 1 ? decoded->front() : written, written};
  }

  void key(Path& path, std::vector<std::string>& spelling) {
    while (more()) {
      skip_spaces();
      auto [part, written] = key_part();
      path.push_back(std::move(part));
      spelling.push_back(std::move(written));
      skip_spaces();
      if (peek() != '.') return;
      ++at_;
    }
  }

  void header(std::size_t line) {
    Section section{.begin = line, .indent = at_ - line};
    section.array = ahead("[[");
    at_ += section.array ? 2 : 1;
    key(section.path, section.spelling);
    for (const auto& other : layout_.sections) {
      if (other.array && starts_with(section.path, other.path)) section.array = true;
    }
    skip_line();
    section.header_end = section.content_end = at_;
    layout_.sections.push_back(std::move(section));
  }

  void key_value(std::size_t line) {
    auto& section = layout_.sections.back();
    Entry entry{.path = section.path,
                .section = layout_.sections.size() - 1,
                .line_begin = line,
                .indent = at_ - line};
    std::vector<std::string> spelling;
    key(entry.path, spelling);
    const auto index = begin_value(std::move(entry));
    skip_line();
    layout_.entries[index].line_end = at_;
    layout_.sections.back().content_end = at_;
  }

  // Records the entry first, so that a table's members come behind it.
  std::size_t begin_value(Entry entry) {
    if (peek() == '=') ++at_;
    skip_spaces();
    entry.value_begin = at_;
    const auto index = layout_.entries.size();
    layout_.entries.push_back(entry);
    value(entry);
    layout_.entries[index].value_end = at_;
    return index;
  }

  void value(const Entry& entry) {
    const char c = peek();
    if (c == '"' || c == '\'') {
      skip_string();
    } else if (c == '[') {
      array();
    } else if (c == '{') {
      inline_table(entry);
    } else {
      while (more() && std::string_view(",]}#\r\n").find(peek()) == std::string_view::npos) ++at_;
      while (at_ > entry.value_begin && (text_[at_ - 1] == ' ' || text_[at_ - 1] == '\t')) --at_;
    }
  }

  void array() {
    ++at_;
    const auto recorded = layout_.entries.size();
    while (skip_blank(), more() && peek() != ']') {
      const auto before = at_;
      if (peek() == ',') {
        ++at_;
      } else {
        value(Entry{.value_begin = at_});
      }
      if (at_ == before) ++at_;
    }
    if (more()) ++at_;
    layout_.entries.resize(recorded);  // members of tables in a list have no path
  }

  void inline_table(const Entry& parent) {
    ++at_;
    while (skip_blank(), more() && peek() != '}') {
      if (peek() == ',') {
        ++at_;
        continue;
      }
      Entry member{
          .path = parent.path, .section = parent.section, .line_begin = at_, .in_inline = true};
      std::vector<std::string> spelling;
      key(member.path, spelling);
      const auto before = at_;
      const auto index = begin_value(std::move(member));
      layout_.entries[index].line_end = at_;
      if (at_ == before) ++at_;
    }
    if (more()) ++at_;
  }

  void finish() {
    auto& sections = layout_.sections;
    for (std::size_t i = 0; i < sections.size(); ++i) {
      sections[i].end = i + 1 < sections.size() ? sections[i + 1].begin : text_.size();
    }
    std::erase_if(layout_.entries, [&](const Entry& e) { return sections[e.section].array; });
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Layout layout_;
};

}  // namespace

Layout scan(std::string_view text) {
  return Scanner(text).run();
}

bool starts_with(const Path& path, const Path& prefix) {
  return path.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

}  // namespace gantry::toml_edit::detail
