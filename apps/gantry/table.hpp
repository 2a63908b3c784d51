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

  // Two spaces between columns, no trailing blanks, a newline after each row.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gantry::cli
