// SPDX-License-Identifier: Apache-2.0
#include "doctor/archive/secrets.hpp"

#include "base/core/text.hpp"

#include <algorithm>
#include <array>

namespace gantry::doctor {
namespace {

constexpr std::string_view kRemoved = "[removed]";

// Parts of a key's name, in lower case without '-' and '_'.
constexpr std::array<std::string_view, 11> kSecretWords{
    "password",   "passwd",    "secret", "token",  "credential", "authorization",
    "privatekey", "clientkey", "apikey", "bearer", "accesskey"};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

bool names_a_secret(std::string_view key) {
  auto plain = to_lower(key);
  std::erase_if(plain, [](char c) { return c == '-' || c == '_'; });
  if (plain == "auth") return true;
  return std::any_of(kSecretWords.begin(), kSecretWords.end(),
                     [&](std::string_view word) { return contains(plain, word); });
}

// A number or a word of JSON, which is no secret.
bool is_literal(std::string_view value) {
  const auto word = value.substr(0, value.find_first_of(" ,}]"));
  if (word == "null" || word == "true" || word == "false") return true;
  return !word.empty() &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// One line, read from left to right.
class LineCleaner {
 public:
  explicit LineCleaner(std::string_view line) : line_(line) {}

  std::string run() {
    while (at_ < line_.size()) {
      if (!is_word(line_[at_])) {
        remove_user_of_url();
        continue;
      }
      const auto from = at_;
      while (at_ < line_.size() && is_word(line_[at_])) ++at_;
      const auto word = line_.substr(from, at_ - from);
      if (is_web_token(word)) {
        out_ += kRemoved;
        continue;
      }
      out_ += word;
      if (names_a_secret(word)) remove_value(word);
    }
    return std::move(out_);
  }

 private:
  // "eyJ...": the three parts of a JSON web token begin with a coded "{".
  static bool is_web_token(std::string_view word) {
    return word.starts_with("eyJ") && word.size() > 40 &&
           std::count(word.begin(), word.end(), '.') >= 1;
  }

  void remove_user_of_url() {
    out_ += line_[at_++];
    if (!out_.ends_with("://")) return;
    const auto end = line_.find_first_of(" \t\"'/", at_);
    const auto host = line_.substr(at_, end - at_);
    const auto sign = host.rfind('@');
    if (sign == std::string_view::npos) return;
    out_ += kRemoved;
    at_ += sign;
  }

  // After a key: `: value`, `= "value"`, `": "value"`, and for "Bearer" also ` value`.
  void remove_value(std::string_view key) {
    auto next = at_;
    while (next < line_.size() && (line_[next] == '"' || line_[next] == '\'' || line_[next] == ' '))
      ++next;
    const bool assigned = next < line_.size() && (line_[next] == ':' || line_[next] == '=');
    if (!assigned && (to_lower(key) != "bearer" || next == at_)) return;
    if (assigned) ++next;
    while (next < line_.size() && line_[next] == ' ') ++next;
    if (next >= line_.size()) return;
    const char quote = line_[next] == '"' || line_[next] == '\'' ? line_[next] : '\0';
    if (quote != '\0') ++next;
    const auto end = quote != '\0' ? closing(quote, next) : line_.size();
    const auto value = line_.substr(next, end - next);
    const bool container = quote == '\0' && (value.front() == '{' || value.front() == '[');
    if (value.empty() || container || (quote == '\0' && is_literal(value))) return;
    out_ += line_.substr(at_, next - at_);
    out_ += kRemoved;
    at_ = end;
  }

  std::size_t closing(char quote, std::size_t from) const {
    for (auto i = from; i < line_.size(); ++i) {
      if (line_[i] == '\\') {
        ++i;
      } else if (line_[i] == quote) {
        return i;
      }
    }
    return line_.size();
  }

  std::string_view line_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string remove_secrets(std::string_view text) {
  std::string out;
  bool in_pem = false;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    const bool begins = contains(line, "-----BEGIN ");
    if (begins) out += std::string(kRemoved) + "\n";
    in_pem = in_pem || begins;
    if (!in_pem) {
      out += LineCleaner(line).run();
      if (end != std::string_view::npos) out += '\n';
    }
    if (contains(line, "-----END ")) in_pem = false;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return out;
}

}  // namespace gantry::doctor
