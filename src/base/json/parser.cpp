// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/json/strings_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::json {
namespace {

using detail::Node;

// One pass without recursion: the open containers are a stack of indices.
class Parser {
 public:
  explicit Parser(detail::ParsedText& into) : text_(into.text), nodes_(into.nodes) {}

  Status check_utf8() {
    at_ = utf8_prefix(text_);
    if (at_ < text_.size()) return syntax_error("a byte that is not UTF-8");
    at_ = 0;
    return {};
  }

  Status run() {
    nodes_.reserve(text_.size() / 12 + 8);
    skip_space();
    GANTRY_CHECK(value(0, 0));
    while (!open_.empty()) GANTRY_CHECK(step());
    skip_space();
    if (at_ != text_.size()) return syntax_error("unexpected text after the end of the value");
    return {};
  }

 private:
  struct OpenLevel {
    std::uint32_t node;
    std::uint32_t last_child;  // 0: none yet
  };

  Error syntax_error(std::string_view what, Errc code = Errc::Corrupt) const {
    const auto before = text_.substr(0, std::min(at_, text_.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const auto start = before.rfind('\n');
    const auto column = start == std::string_view::npos ? before.size() : before.size() - start - 1;
    return {code, fmt::format("line {}, column {}: {}", line, column + 1, what)};
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  // Reads the next part of the innermost open container: its end, or one more item.
  Status step() {
    auto& open = open_.back();
    const bool object = nodes_[open.node].kind == Kind::Object;
    skip_space();
    if (peek() == (object ? '}' : ']')) {
      ++at_;
      return close();
    }
    if (open.last_child != 0) {
      if (peek() != ',')
        return syntax_error(object ? "`,` or `}` expected" : "`,` or `]` expected");
      ++at_;
      skip_space();
    }
    std::uint32_t key_begin = 0;
    std::uint32_t key_end = 0;
    if (object) {
      if (peek() != '"') return syntax_error("a key in quotes expected");
      key_begin = position();
      GANTRY_CHECK(string());
      key_end = position();
      skip_space();
      if (peek() != ':') return syntax_error("`:` expected");
      ++at_;
      skip_space();
    }
    link_child(open);
    return value(key_begin, key_end);
  }

  void link_child(OpenLevel& open) {
    const auto child = static_cast<std::uint32_t>(nodes_.size());
    auto& from =
        open.last_child == 0 ? nodes_[open.node].first_child : nodes_[open.last_child].next;
    from = child;
    open.last_child = child;
  }

  Status close() {
    const auto index = open_.back().node;
    open_.pop_back();
    nodes_[index].end = position();
    if (nodes_[index].kind == Kind::Object) return check_duplicate_keys(nodes_[index]);
    return {};
  }

  Status check_duplicate_keys(const Node& object) {
    keys_.clear();
    for (auto child = object.first_child; child != 0; child = nodes_[child].next) {
      keys_.push_back(child);
    }
    const auto before = [this](std::uint32_t a, std::uint32_t b) {
      return compare_strings(key_of(a), key_of(b)) < 0;
    };
    std::sort(keys_.begin(), keys_.end(), before);
    const auto twice =
        std::adjacent_find(keys_.begin(), keys_.end(), [this](std::uint32_t a, std::uint32_t b) {
          return compare_strings(key_of(a), key_of(b)) == 0;
        });
    if (twice == keys_.end()) return {};
    at_ = std::max(nodes_[*twice].key_begin, nodes_[*(twice + 1)].key_begin);
    return syntax_error(fmt::format("the key {} appears twice", key_of(*twice).substr(0, 80)));
  }

  std::string_view key_of(std::uint32_t index) const {
    const auto& node = nodes_[index];
    return text_.substr(node.key_begin, node.key_end - node.key_begin);
  }

  Status value(std::uint32_t key_begin, std::uint32_t key_end) {
    if (nodes_.size() >= kValueLimit) return syntax_error("too many values", Errc::TooLarge);
    const auto index = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({.begin = position(), .key_begin = key_begin, .key_end = key_end});
    GANTRY_TRY(const auto kind, read_scalar_or_open(index));
    nodes_[index].kind = kind;
    nodes_[index].end = position();
    return {};
  }

  Result<Kind> read_scalar_or_open(std::uint32_t index) {
    const char c = peek();
    if (c == '{' || c == '[') {
      if (open_.size() >= kDepthLimit) return syntax_error("nested too deeply");
      ++at_;
      open_.push_back({.node = index, .last_child = 0});
      return c == '{' ? Kind::Object : Kind::Array;
    }
    if (c == '"') {
      GANTRY_CHECK(string());
      return Kind::String;
    }
    if (c == '-' || is_digit(c)) {
      GANTRY_CHECK(number());
      return Kind::Number;
    }
    if (word("true") || word("false")) return Kind::Bool;
    if (word("null")) return Kind::Null;
    return syntax_error(at_ >= text_.size() ? "the text ends too early" : "a value expected");
  }

  bool word(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }

  Status string() {
    const auto length = string_length(text_.substr(at_));
    if (!length)
      return syntax_error("the string does not end or contains a character that is not allowed");
    at_ += *length;
    return {};
  }

  bool digits() {
    const auto start = at_;
    while (is_digit(peek())) ++at_;
    return at_ != start;
  }

  Status number() {
    if (peek() == '-') ++at_;
    const bool zero = peek() == '0';
    const auto start = at_;
    if (!digits() || (zero && at_ - start > 1)) return syntax_error("not a number");
    if (peek() == '.') {
      ++at_;
      if (!digits()) return syntax_error("not a number");
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digits()) return syntax_error("not a number");
    }
    return {};
  }

  std::uint32_t position() const { return static_cast<std::uint32_t>(at_); }

  std::string_view text_;
  std::vector<Node>& nodes_;
  std::vector<OpenLevel> open_;
  std::vector<std::uint32_t> keys_;
  std::size_t at_ = 0;
};

}  // namespace

Result<Document> Document::parse(std::string text, Encoding encoding) {
  if (text.size() > kSizeLimit) {
    return Error(Errc::TooLarge, fmt::format("the JSON text has {} bytes; the limit is {}",
                                             text.size(), kSizeLimit));
  }
  auto parsed = std::make_unique<detail::ParsedText>();
  parsed->text = std::move(text);
  Parser parser(*parsed);
  if (encoding == Encoding::Utf8) GANTRY_CHECK(parser.check_utf8());
  GANTRY_CHECK(parser.run());
  return Document(std::move(parsed));
}

}  // namespace gantry::json
