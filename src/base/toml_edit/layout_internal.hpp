// SPDX-License-Identifier: Apache-2.0
// The positions of sections and entries in a TOML text that a parser has already accepted.
#pragma once

#include "base/toml_edit/document.hpp"

namespace gantry::toml_edit::detail {

struct Entry {
  Path path;  // the full path, including the section's
  std::size_t section = 0;
  std::size_t line_begin = 0;  // of a member of an inline table: where its key begins
  std::size_t line_end = 0;    // after the line's end; of such a member: the end of its value
  std::size_t value_begin = 0;
  std::size_t value_end = 0;
  std::size_t indent = 0;
  bool in_inline = false;
};

struct Section {
  Path path;
  std::vector<std::string> spelling;  // of each part, as written
  bool array = false;                 // [[...]], or below one
  std::size_t begin = 0;              // its header's line
  std::size_t header_end = 0;         // after that line
  std::size_t content_end = 0;        // after the line of its last value, or header_end
  std::size_t end = 0;                // where the next one begins
  std::size_t indent = 0;
};

struct Layout {
  std::vector<Section> sections;  // the first is the root, without a header
  std::vector<Entry> entries;
};

Layout scan(std::string_view text);

bool starts_with(const Path& path, const Path& prefix);

}  // namespace gantry::toml_edit::detail
