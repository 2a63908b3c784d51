// SPDX-License-Identifier: Apache-2.0
#include "cluster/report/columns.hpp"

#include "base/core/text.hpp"

#include <algorithm>
#include <vector>

namespace gantry::report {
namespace {

constexpr std::size_t kPadding = 2;

struct Line {
  std::vector<std::string_view> cells;  // each ended by a tab
  std::string_view rest;
};

std::size_t width(std::string_view cell) {
  return static_cast<std::size_t>(std::count_if(cell.begin(), cell.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  }));
}

Line cut(std::string_view text) {
  Line line;
  for (auto tab = text.find('\t'); tab != std::string_view::npos; tab = text.find('\t')) {
    line.cells.push_back(text.substr(0, tab));
    text.remove_prefix(tab + 1);
  }
  line.rest = text;
  return line;
}

// The width of column `column` in lines [first, end), which all have it.
std::size_t column_width(const std::vector<Line>& lines, std::size_t first, std::size_t end,
                         std::size_t column) {
  std::size_t widest = 0;
  for (auto at = first; at < end; ++at) widest = std::max(widest, width(lines[at].cells[column]));
  return widest + kPadding;
}

using Widths = std::vector<std::vector<std::size_t>>;  // by line, then column

void measure(const std::vector<Line>& lines, std::size_t column, Widths& widths) {
  const auto has = [&](std::size_t at) { return lines[at].cells.size() > column; };
  for (std::size_t at = 0; at < lines.size();) {
    auto end = at;
    while (end < lines.size() && has(end)) ++end;
    if (end > at) {
      const auto wide = column_width(lines, at, end, column);
      for (; at < end; ++at) widths[at].push_back(wide);
    } else {
      ++at;
    }
  }
}

}  // namespace

std::string align_columns(std::string_view text) {
  std::vector<Line> cut_lines;
  std::size_t columns = 0;
  for (const auto line : lines(text)) {
    cut_lines.push_back(cut(line));
    columns = std::max(columns, cut_lines.back().cells.size());
  }
  Widths widths(cut_lines.size());
  for (std::size_t column = 0; column < columns; ++column) measure(cut_lines, column, widths);
  std::string made;
  for (std::size_t at = 0; at < cut_lines.size(); ++at) {
    const auto& line = cut_lines[at];
    for (std::size_t column = 0; column < line.cells.size(); ++column) {
      made += line.cells[column];
      made.append(widths[at][column] - width(line.cells[column]), ' ');
    }
    made += line.rest;
    made += '\n';
  }
  return made;
}

}  // namespace gantry::report
