// SPDX-License-Identifier: Apache-2.0
// Changes to a JSON text. They are collected first and then spliced in together. Everything that no
// change names keeps its bytes. New values follow the layout around them: the file's indentation,
// line ends and spaces.
#pragma once

#include "base/json/document.hpp"

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::json {

// A member's name or an element's number.
struct Step {
  Step(std::string_view name) : key(name) {}    // NOLINT: paths are written {"linux", "devices"}
  Step(const std::string& name) : key(name) {}  // NOLINT
  Step(const char* name) : key(name) {}         // NOLINT
  Step(std::size_t number) : index(number), is_index(true) {}  // NOLINT
  bool operator==(const Step&) const = default;
  std::string key;
  std::size_t index = 0;
  bool is_index = false;
};
using Path = std::vector<Step>;

class Patch {
 public:
  Patch();
  ~Patch();
  Patch(Patch&&) noexcept;
  Patch& operator=(Patch&&) noexcept;

  // Replaces the value at `path`, or adds the member. Creates objects that are missing on the way;
  // a null counts as missing. `value` is JSON text.
  void set(const Path& path, std::string value);
  // Adds an element at the end of the array at `path`. Creates the array if it is missing.
  void append(const Path& path, std::string value);
  // Removes the member or element; does nothing if it does not exist. Element numbers are those of
  // the original text.
  void remove(const Path& path);

  bool empty() const;

  // Returns the new text. Invalid if the path needs an object or array where the document has
  // another value, or if a value is not JSON.
  Result<std::string> apply(const Document& document) const;

 private:
  struct Change;
  friend class Renderer;
  Change& at(const Path& path);
  std::unique_ptr<Change> root_;
};

}  // namespace gantry::json
