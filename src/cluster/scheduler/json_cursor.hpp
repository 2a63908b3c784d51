// SPDX-License-Identifier: Apache-2.0
// A cursor over JSON text that builds no objects: a request of kube-scheduler can have twenty
// thousand node names or fifty megabytes of Node objects, of which only a few values are needed.
// Skipped values are only checked for their structure; json::Document parses the values that are
// kept.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace gantry::scheduler {

class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  // Visits the members of the object at the cursor: calls `member(key)` with the cursor at each
  // value, which `member` must skip. False if there is no object, or if `member` returns false.
  template <class Member>
  bool members(Member&& member) {
    if (!open('{')) return false;
    if (close('}')) return true;
    do {
      const auto key = string();
      if (!key || !take(':') || !member(*key)) return false;
    } while (take(','));
    return close('}');
  }

  // The same for an array.
  template <class Element>
  bool elements(Element&& element) {
    if (!open('[')) return false;
    if (close(']')) return true;
    do {
      if (!element()) return false;
    } while (take(','));
    return close(']');
  }

  // The text between the quotes, with its escapes. nullopt if there is no string.
  std::optional<std::string_view> string();
  // Skips one value of any kind and returns its text.
  std::optional<std::string_view> skip();
  bool null();  // skips it
  bool at_end();

 private:
  char peek();
  bool take(char wanted);
  bool open(char bracket);
  bool close(char bracket);

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace gantry::scheduler
