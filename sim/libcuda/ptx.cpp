// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/ptx.hpp"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

namespace gantry::sim::cuda {
namespace {

bool in_word(char c) {
  return isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' ||
         c == '%';
}

// One word or one other character at a time.
class Reader {
 public:
  explicit Reader(const char* text) : at_(text) {}

  bool next(const char*& word, size_t& length) {
    skip();
    if (*at_ == '\0') return false;
    word = at_;
    if (*at_ == '"') {
      for (++at_; *at_ != '\0' && *at_ != '"'; ++at_) {
      }
      if (*at_ != '\0') ++at_;
    } else if (in_word(*at_)) {
      while (in_word(*at_)) ++at_;
    } else {
      ++at_;
    }
    length = static_cast<size_t>(at_ - word);
    return true;
  }

 private:
  void skip() {
    for (;;) {
      while (isspace(static_cast<unsigned char>(*at_)) != 0) ++at_;
      if (at_[0] == '/' && at_[1] == '/') {
        while (*at_ != '\0' && *at_ != '\n') ++at_;
      } else if (at_[0] == '/' && at_[1] == '*') {
        const char* end = strstr(at_ + 2, "*/");
        at_ = end == nullptr ? at_ + strlen(at_) : end + 2;
      } else {
        return;
      }
    }
  }
  const char* at_;
};

bool is(const char* word, size_t length, const char* wanted) {
  return length == strlen(wanted) && memcmp(word, wanted, length) == 0;
}

class Names {
 public:
  bool add(const char* word, size_t length) {
    void* grown = realloc(text_, size_ + length + 1);
    if (grown == nullptr) return false;
    text_ = static_cast<char*>(grown);
    memcpy(text_ + size_, word, length);
    text_[size_ + length] = '\0';
    size_ += length + 1;
    ++count_;
    return true;
  }
  char* text() const { return text_; }
  uint32_t count() const { return count_; }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  uint32_t count_ = 0;
};

// "6.3" -> 63
int version_number(const char* word) {
  char* end = nullptr;
  const unsigned long major = strtoul(word, &end, 10);
  const unsigned long minor = *end == '.' ? strtoul(end + 1, nullptr, 10) : 0;
  return major > 99 || minor > 9 ? 1000 : static_cast<int>(major * 10 + minor);
}

}  // namespace

PtxSummary summarise_ptx(const char* text) {
  PtxSummary summary{};
  Reader reader(text);
  Names names;
  const char* word = nullptr;
  size_t length = 0;
  long depth = 0;
  bool first = true;
  while (reader.next(word, length)) {
    if (first && !is(word, length, ".version")) return summary;
    first = false;
    summary.is_ptx = true;
    if (is(word, length, "{")) ++depth;
    if (is(word, length, "}")) --depth;
    if (depth < 0) break;
    const bool version = is(word, length, ".version");
    const bool target = is(word, length, ".target");
    const bool entry = is(word, length, ".entry");
    if (!version && !target && !entry) continue;
    if (!reader.next(word, length)) break;
    if (version) summary.version = version_number(word);
    if (target && length > 3 && memcmp(word, "sm_", 3) == 0)
      summary.target = static_cast<int>(strtoul(word + 3, nullptr, 10) % 1000);
    if (entry && !names.add(word, length)) break;
  }
  summary.balanced = depth == 0;
  summary.names = names.text();
  summary.name_count = names.count();
  return summary;
}

}  // namespace gantry::sim::cuda
