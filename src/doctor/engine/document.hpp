// SPDX-License-Identifier: Apache-2.0
// Reads configuration files of other programs (JSON, YAML, TOML) into one kind of tree. Size, depth
// and number of values are limited; a file beyond a limit is an error.
#pragma once

#include "base/core/result.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::doctor {

class Document {
 public:
  // Returns an empty document if there is no such key, so calls of at() can be chained.
  const Document& at(std::string_view key) const;
  bool has(std::string_view key) const;

  const std::string& text() const { return text_; }  // of a string, number or "true"/"false"
  bool is_true() const { return text_ == "true"; }
  bool empty() const { return text_.empty() && members_.empty() && items_.empty(); }
  const std::vector<std::pair<std::string, Document>>& members() const { return members_; }
  const std::vector<Document>& items() const { return items_; }

  static Document scalar(std::string text);
  void add(std::string key, Document value);
  void add(Document item);

 private:
  std::string text_;
  std::vector<std::pair<std::string, Document>> members_;
  std::vector<Document> items_;
};

constexpr std::size_t kMaxDocumentBytes = std::size_t{4} << 20;
constexpr int kMaxDocumentDepth = 48;
constexpr int kMaxDocumentValues = 200'000;

// Errors have the code Corrupt and name the line if the parser knows it.
Result<Document> parse_json(std::string_view text);
Result<Document> parse_yaml(std::string_view text);  // JSON is YAML, too
Result<Document> parse_toml(std::string_view text);

}  // namespace gantry::doctor
