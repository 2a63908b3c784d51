// SPDX-License-Identifier: Apache-2.0
// Other people's TOML files, changed where asked and nowhere else: comments, order, spelling and
// indentation of everything that is not touched stay byte for byte. Each change is checked by a
// full parser before it is believed: the new text must mean the old one plus the change.
#pragma once

#include "base/core/result.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::toml_edit {

using Path = std::vector<std::string>;  // {"plugins", "io.containerd.grpc.v1.cri"}

// Written as in a file: plugins."io.containerd.grpc.v1.cri". Invalid when it is no key.
Result<Path> parse_path(std::string_view text);
std::string to_string(const Path& path);

// A text as a TOML value, in quotation marks.
std::string quote(std::string_view text);
std::string quote(const std::vector<std::string>& texts);  // ["a", "b"]

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

// What toml++ does not bound itself: size, depth of dotted keys (it takes trees apart by
// recursion), and anything but ASCII outside texts and comments. Corrupt, with the line, when a
// file goes beyond.
Status check_bounds(std::string_view text);

namespace detail {
struct Layout;
}

class Document {
 public:
  // Corrupt, with the line, when it is no TOML or goes beyond the bounds.
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
  std::optional<std::string> string(const Path& path) const;    // nullopt: no text
  std::optional<std::int64_t> integer(const Path& path) const;  // nullopt: no whole number
  std::optional<std::vector<std::string>> strings(const Path& path) const;  // a list of texts
  std::vector<std::string> members(const Path& path) const;                 // of a table, sorted

  // Sets one value, given as TOML. A new key comes after the others of its table, a new table after
  // its relatives. Exists when a table is in the way, Unsupported inside an array of tables.
  Status set(const Path& path, std::string_view raw);

  // Takes a value, or a table with all below it, out. Nothing happens when it is not there.
  Status remove(const Path& path);

 private:
  explicit Document(std::string text);

  std::string text_;
  std::unique_ptr<detail::Layout> layout_;
};

}  // namespace gantry::toml_edit
