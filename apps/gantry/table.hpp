// SPDX-License-Identifier: Apache-2.0
// A table with aligned columns for people to read. Programs use --json.
#pragma once

#include <string>
#include <vector>

namespace gantry::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() <= 1; }

  // Two spaces between columns, no trailing blanks, a newline after each row. If a row is longer
  // than `width`, the last column is wrapped; if that is not enough, each row becomes a list. 0: no
  // limit.
  std::string text(std::size_t width = 0) const;

 private:
  std::string as_columns(const std::vector<std::size_t>& widths, std::size_t width) const;
  std::string as_lists(std::size_t width) const;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gantry::cli
