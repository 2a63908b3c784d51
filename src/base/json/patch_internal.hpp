// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json/patch.hpp"

#include <optional>

namespace gantry::json {

// A tree of changes that mirrors the document's.
struct Patch::Change {
  std::optional<std::string> replacement;
  bool removed = false;
  std::vector<std::pair<Step, std::unique_ptr<Change>>> inside;
  std::vector<std::string> appended;

  const Change* find(const Step& step) const;
  bool adds() const;  // whether something is there afterwards that a missing value would need
};

// How a text is laid out.
struct Style {
  std::string line_end;  // "\n", "\r\n"; "" when everything is on one line
  std::string unit;      // one level of indentation
  std::string colon;     // what is between key and value: ":" or ": "
  std::string comma;     // between items on one line: "," or ", "
};

Style detect_style(const Document& document);

// A value as `style` has it, its first line already indented by `indentation`. On one line when
// `flat`.
void write_value(std::string& out, Value value, const Style& style, const std::string& indentation,
                 bool flat);

}  // namespace gantry::json
