// SPDX-License-Identifier: Apache-2.0
// Changes to a JSON text, collected first and spliced in once. What a change does not name keeps
// its bytes; what is added takes the look of its surroundings: the file's own indentation, its line
// ends, its way with spaces.
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

  // Replaces the value there, or adds the member; objects that are missing on the way are made. A
  // null on the way counts as missing. `value` is JSON text.
  void set(const Path& path, std::string value);
  // Adds an element at the end of the array there, made when missing.
  void append(const Path& path, std::string value);
  // Takes the member or element away; nothing happens when it is not there. Element numbers are
  // those of the original text.
  void remove(const Path& path);

  bool empty() const;

  // The new text. Invalid when the path meets something that is neither an object nor an array
  // where it must be one, or when a value is no JSON.
  Result<std::string> apply(const Document& document) const;

 private:
  struct Change;
  friend class Renderer;
  Change& at(const Path& path);
  std::unique_ptr<Change> root_;
};

}  // namespace gantry::json
