// SPDX-License-Identifier: Apache-2.0
#include "vm/hypervisor/shell_words.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

namespace gantry::hypervisor {
namespace {

class WordReader {
 public:
  explicit WordReader(std::string_view text) : text_(text) {}

  Result<std::vector<ShellWord>> read() {
    while (at_ < text_.size()) {
      if (words_.size() > kWordLimit)
        return Error(Errc::TooLarge, fmt::format("more than {} words", kWordLimit));
      GANTRY_CHECK(step(text_[at_]));
    }
    end_word();
    return std::move(words_);
  }

 private:
  Status step(char c) {
    switch (c) {
      case '\'':
      case '"': return quoted(c);
      case '\\': escaped(); return {};
      case '#':
        if (!in_word_) return comment();
        break;
      case ' ':
      case '\t':
      case '\r': end_word(); break;
      case '\n':
      case ';':
      case '&':
      case '|': end_command(c); break;
      default: break;
    }
    const bool separator = std::string_view(" \t\r\n;&|").find(c) != std::string_view::npos;
    if (!separator) add(c);
    ++at_;
    return {};
  }

  // Inside double quotes a backslash protects only the characters that mean something there.
  Status quoted(char quote) {
    const int begin = line_;
    in_word_ = true;
    start_line();
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == quote) {
        ++at_;
        return {};
      }
      if (c == '\n') ++line_;
      const bool protects =
          quote == '"' && c == '\\' && at_ + 1 < text_.size() &&
          std::string_view("\"\\$`\n").find(text_[at_ + 1]) != std::string_view::npos;
      if (protects) {
        ++at_;
        if (text_[at_] == '\n') {
          ++line_;
          continue;
        }
      }
      add(text_[at_]);
    }
    return Error(Errc::Corrupt, fmt::format("line {}: a quote without its end", begin));
  }

  void escaped() {
    ++at_;
    if (at_ == text_.size()) return;
    if (text_[at_] == '\n') {
      ++line_;  // a continued line
    } else {
      add(text_[at_]);
    }
    ++at_;
  }

  Status comment() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    return {};
  }

  void start_line() {
    if (word_.line == 0) word_.line = line_;
  }

  void add(char c) {
    in_word_ = true;
    start_line();
    word_.text += c;
  }

  void end_word() {
    if (in_word_) words_.push_back(std::move(word_));
    word_ = {.line = 0};
    in_word_ = false;
  }

  void end_command(char c) {
    end_word();
    if (!words_.empty()) words_.back().ends_command = true;
    if (c == '\n') ++line_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool in_word_ = false;
  ShellWord word_{.line = 0};
  std::vector<ShellWord> words_;
};

Result<std::vector<ShellWord>> process_words(std::string_view text) {
  std::vector<ShellWord> words;
  for (const auto word : split(text, '\0')) {
    if (words.size() > kWordLimit)
      return Error(Errc::TooLarge, fmt::format("more than {} words", kWordLimit));
    words.push_back({.text = std::string(word)});
  }
  if (!words.empty() && words.back().text.empty()) words.pop_back();
  return words;
}

}  // namespace

Result<std::vector<ShellWord>> shell_words(std::string_view text) {
  if (text.size() > kCommandSizeLimit) {
    return Error(Errc::TooLarge,
                 fmt::format("the command has {}; at most {} are read", human_bytes(text.size()),
                             human_bytes(kCommandSizeLimit)));
  }
  if (text.find('\0') != std::string_view::npos) return process_words(text);
  return WordReader(text).read();
}

}  // namespace gantry::hypervisor
