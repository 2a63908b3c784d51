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
  bool adds() const;  // whether a missing value must be created for this change
};

// How a text is laid out.
struct Style {
  std::string line_end;  // "\n", "\r\n"; "" when everything is on one line
  std::string unit;      // one level of indentation
  std::string colon;     // between key and value: ":" or ": "
  std::string comma;     // between items on one line: "," or ", "
};

Style detect_style(const Document& document);

// Writes a value in `style`; its first line is already indented by `indentation`. `flat`: on one
// line.
void write_value(std::string& out, Value value, const Style& style, const std::string& indentation,
                 bool flat);

}  // namespace gantry::json
