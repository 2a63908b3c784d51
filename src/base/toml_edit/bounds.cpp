// SPDX-License-Identifier: Apache-2.0
// Scans words, quoted strings and comments without a grammar, to know which bytes are outside
// quotation marks.
#include "base/toml_edit/document.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::toml_edit {
namespace {

constexpr std::size_t kMaxDotsPerLine = 64;

bool is_wide(char c) {
  return (static_cast<unsigned char>(c) & 0x80U) != 0;
}

bool is_plain(char c) {
  return (c >= ' ' && c <= '~') || c == '\t' || c == '\n' || c == '\r';
}

bool one_of(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}

class BoundsChecker {
 public:
  explicit BoundsChecker(std::string_view text) : text_(text) {}

  Status run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '"' || c == '\'') {
        GANTRY_CHECK(quoted());
      } else {
        GANTRY_CHECK(plain(c));
      }
    }
    return {};
  }

 private:
  Error error_at_line(std::string_view what) const {
    return Error(Errc::Corrupt, fmt::format("TOML: line {}: {}", line_, what));
  }

  Status plain(char c) {
    if (!is_plain(c)) {
      return error_at_line(fmt::format("the byte {:#04x} is not allowed outside a string",
                                       static_cast<unsigned char>(c)));
    }
    if (c == '\n') {
      ++line_;
      dots_ = 0;
    } else if (c == '.' && ++dots_ > kMaxDotsPerLine) {
      return error_at_line(fmt::format("more than {} dots on one line", kMaxDotsPerLine));
    }
    if (!one_of(c, " \t\r")) last_ = c;
    ++at_;
    return {};
  }

  // Reads from the opening to the closing mark. The checks around it keep the scan in step with the
  // parser: no string begins or ends in the middle of a word.
  Status quoted() {
    if (!one_of(last_, "=,[{.\n")) return error_at_line("there is a quotation mark inside a word");
    const char quote = text_[at_];
    const std::string three(3, quote);
    const std::size_t marks = text_.substr(at_).starts_with(three) ? 3 : 1;
    const std::string_view mark = std::string_view(three).substr(0, marks);
    const auto begin = at_;
    at_ += marks;
    bool escapes = false;
    while (at_ < text_.size() && !text_.substr(at_).starts_with(mark)) {
      if (marks == 1 && text_[at_] == '\n') break;
      const bool escape = quote == '"' && text_[at_] == '\\';
      escapes = escapes || escape;
      at_ += escape ? 2 : 1;
    }
    if (at_ >= text_.size() || text_[at_] == '\n') return error_at_line("a string is not closed");
    at_ += marks;
    while (marks == 3 && at_ < text_.size() && text_[at_] == quote) ++at_;  // """a""""
    const auto inside = text_.substr(begin, at_ - begin);
    // The white-space table of toml++ has a defect after a backslash, and in what it reads as a
    // number with a dot.
    if ((escapes || last_ == '.') && std::any_of(inside.begin(), inside.end(), is_wide)) {
      return error_at_line("non-ASCII characters after a dot or next to a backslash");
    }
    if (at_ < text_.size() && !one_of(text_[at_], " \t\r\n.,=]}#")) {
      return error_at_line("a word continues after a quotation mark");
    }
    line_ += static_cast<std::size_t>(std::count(inside.begin(), inside.end(), '\n'));
    last_ = quote;
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t dots_ = 0;  // in one line; keys do not cross lines, so this bounds the depth
  char last_ = '\n';      // the last character that is not a space
};

}  // namespace

Status check_bounds(std::string_view text) {
  if (text.size() > kMaxBytes) return Error(Errc::Corrupt, "TOML: the file is too large");
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return BoundsChecker(text).run();
}

}  // namespace gantry::toml_edit
