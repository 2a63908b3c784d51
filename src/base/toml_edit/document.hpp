// SPDX-License-Identifier: Apache-2.0
// Edits TOML files of other programs. Everything that a change does not name keeps its bytes:
// comments, order, spelling and indentation. A full parser checks each change: the new text must
// mean the old text plus the change.
#pragma once

#include "base/core/result.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::toml_edit {

using Path = std::vector<std::string>;  // {"plugins", "io.containerd.grpc.v1.cri"}

// Written as in a file: plugins."io.containerd.grpc.v1.cri". Invalid if it is not a key.
Result<Path> parse_path(std::string_view text);
std::string to_string(const Path& path);

// A string as a TOML value, in quotation marks.
std::string quote(std::string_view text);
std::string quote(const std::vector<std::string>& texts);  // ["a", "b"]

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

// Checks the bounds that toml++ does not check: size, depth of dotted keys (it destroys trees
// recursively), and non-ASCII bytes outside strings and comments. Returns Corrupt, with the line,
// if a file exceeds them.
Status check_bounds(std::string_view text);

namespace detail {
struct Layout;
}

class Document {
 public:
  // Returns Corrupt, with the line, if it is not TOML or exceeds the bounds.
  static Result<Document> parse(std::string text);
  Document(const Document&);
  Document& operator=(const Document&);
  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();

  const std::string& text() const { return text_; }

  bool has(const Path& path) const;                             // a value or a table
  bool is_table(const Path& path) const;                        // also an inline one
  std::optional<std::string> raw(const Path& path) const;       // the value as written
  std::optional<std::string> string(const Path& path) const;    // nullopt: not a string
  std::optional<std::int64_t> integer(const Path& path) const;  // nullopt: not a whole number
  std::optional<std::vector<std::string>> strings(const Path& path) const;  // a list of strings
  std::vector<std::string> members(const Path& path) const;                 // of a table, sorted

  // Sets one value, given as TOML. A new key goes after the other keys of its table, a new table
  // after its sibling tables. Exists if there is a table at the path, Unsupported inside an array
  // of tables.
  Status set(const Path& path, std::string_view raw);

  // Removes a value, or a table with everything below it. Does nothing if it does not exist.
  Status remove(const Path& path);

 private:
  explicit Document(std::string text);

  std::string text_;
  std::unique_ptr<detail::Layout> layout_;
};

}  // namespace gantry::toml_edit
