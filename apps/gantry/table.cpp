// SPDX-License-Identifier: Apache-2.0
#include "gantry/table.hpp"

#include "gantry/terminal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::cli {

std::string Table::as_columns(const std::vector<std::size_t>& widths, std::size_t width) const {
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      line += fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    if (!row.empty()) {
      const bool fits = width == 0 || line.size() + row.back().size() <= width;
      line += fits ? row.back() : wrap(row.back(), line.size(), width);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string Table::as_lists(std::size_t width) const {
  const auto& header = rows_.front();
  std::size_t widest = 0;
  for (const auto& name : header) widest = std::max(widest, name.size());
  std::string text;
  for (std::size_t i = 1; i < rows_.size(); ++i) {
    if (i > 1) text += "\n";
    for (std::size_t j = 0; j < rows_[i].size() && j < header.size(); ++j) {
      text += fmt::format("{:<{}}  {}\n", header[j], widest, wrap(rows_[i][j], widest + 2, width));
    }
  }
  return text;
}

std::string Table::text(std::size_t width) const {
  constexpr std::size_t kNarrowestColumn = 24;
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::size_t before_last = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) before_last += widths[i] + 2;
  const auto last = widths.empty() ? 0 : widths.back();
  const bool columns_fit = before_last + std::min(last, kNarrowestColumn) <= width;
  return width == 0 || columns_fit || empty() ? as_columns(widths, width) : as_lists(width);
}

}  // namespace gantry::cli
