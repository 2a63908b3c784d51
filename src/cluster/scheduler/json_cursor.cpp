// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler/json_cursor.hpp"

namespace gantry::scheduler {
namespace {

constexpr int kDepthLimit = 128;

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

bool ends_scalar(char c) {
  return is_space(c) || c == ',' || c == ']' || c == '}';
}

}  // namespace

char JsonCursor::peek() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonCursor::take(char wanted) {
  if (peek() != wanted) return false;
  ++at_;
  return true;
}

bool JsonCursor::open(char bracket) {
  if (depth_ >= kDepthLimit || !take(bracket)) return false;
  ++depth_;
  return true;
}

bool JsonCursor::close(char bracket) {
  if (!take(bracket)) return false;
  --depth_;
  return true;
}

std::optional<std::string_view> JsonCursor::string() {
  if (!take('"')) return std::nullopt;
  const auto begin = at_;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '"') return text_.substr(begin, at_++ - begin);
    if (static_cast<unsigned char>(c) < 0x20) return std::nullopt;
    if (c == '\\') ++at_;
  }
  return std::nullopt;
}

// Counts brackets without matching their kinds: the JSON parser checks the text later.
std::optional<std::string_view> JsonCursor::skip() {
  const char first = peek();
  const auto begin = at_;
  if (first == '"') {
    if (!string()) return std::nullopt;
    return text_.substr(begin, at_ - begin);
  }
  if (first != '{' && first != '[') {
    while (at_ < text_.size() && !ends_scalar(text_[at_])) ++at_;
    if (at_ == begin) return std::nullopt;
    return text_.substr(begin, at_ - begin);
  }
  int depth = 0;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') {
      if (!string()) return std::nullopt;
      continue;
    }
    ++at_;
    if (c == '{' || c == '[') {
      if (++depth > kDepthLimit) return std::nullopt;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return text_.substr(begin, at_ - begin);
    }
  }
  return std::nullopt;
}

bool JsonCursor::null() {
  if (peek() != 'n' || text_.substr(at_, 4) != "null") return false;
  at_ += 4;
  return true;
}

bool JsonCursor::at_end() {
  return peek() == '\0' && at_ >= text_.size();
}

}  // namespace gantry::scheduler
