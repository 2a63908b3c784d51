// SPDX-License-Identifier: Apache-2.0
// Other people's configuration files as one kind of tree, whatever they are written in. Input is
// bounded in size, depth and number of values: what is larger is an error.
#pragma once

#include "base/core/result.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::doctor {

class Document {
 public:
  // A value that is not there is an empty one: at() can be chained without asking.
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

// Errors are Corrupt and name the line where the format has one.
Result<Document> parse_json(std::string_view text);
Result<Document> parse_yaml(std::string_view text);  // JSON is YAML, too
Result<Document> parse_toml(std::string_view text);

}  // namespace gantry::doctor
