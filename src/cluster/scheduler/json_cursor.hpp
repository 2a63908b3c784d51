// SPDX-License-Identifier: Apache-2.0
// A cursor over JSON text that builds nothing: a request of the scheduler may hold twenty thousand
// node names or fifty megabytes of Node objects, of which a few words are wanted. What is stepped
// over is checked for its shape only; what is kept is given to json::Document afterwards.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace gantry::scheduler {

class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text) : text_(text) {}

  // The member of the object under the cursor: `member(key)` is called with the cursor on each
  // value, and must step over it. False where this is no object, or `member` says so.
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

  // What is between the quotes, escapes and all. nullopt where this is no string.
  std::optional<std::string_view> string();
  // Over one value of any kind: its text.
  std::optional<std::string_view> skip();
  bool null();  // steps over it
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
