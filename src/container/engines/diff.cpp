// SPDX-License-Identifier: Apache-2.0
#include "container/engines/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gantry::engines {
namespace {

constexpr std::size_t kContextLines = 3;
constexpr std::size_t kCells = 4'000'000;  // beyond this, the middle is shown as replaced

struct Line {
  char mark = ' ';
  std::string_view text;
};

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

using Lines = std::vector<std::string_view>;

// The part between a common beginning and a common end, by longest common subsequence.
void diff_middle(const Lines& a, const Lines& b, std::vector<Line>& out) {
  const auto width = b.size() + 1;
  std::vector<std::uint32_t> length;
  const bool small = (a.size() + 1) <= kCells / width;
  if (small) {
    length.resize((a.size() + 1) * width);
    for (std::size_t i = a.size(); i-- > 0;) {
      for (std::size_t j = b.size(); j-- > 0;) {
        length[i * width + j] =
            a[i] == b[j] ? length[(i + 1) * width + j + 1] + 1
                         : std::max(length[(i + 1) * width + j], length[i * width + j + 1]);
      }
    }
  }
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (small && i < a.size() && j < b.size() && a[i] == b[j]) {
      out.push_back({' ', a[i++]});
      ++j;
    } else if (i < a.size() && (j == b.size() || !small ||
                                length[(i + 1) * width + j] >= length[i * width + j + 1])) {
      out.push_back({'-', a[i++]});
    } else {
      out.push_back({'+', b[j++]});
    }
  }
}

std::vector<Line> all_lines(const Lines& a, const Lines& b) {
  std::size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  std::size_t tail = 0;
  while (tail < a.size() - head && tail < b.size() - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) {
    ++tail;
  }
  std::vector<Line> out;
  for (std::size_t i = 0; i < head; ++i) out.push_back({' ', a[i]});
  const auto middle = [&](const Lines& lines) {
    return Lines(lines.begin() + static_cast<std::ptrdiff_t>(head),
                 lines.end() - static_cast<std::ptrdiff_t>(tail));
  };
  diff_middle(middle(a), middle(b), out);
  for (std::size_t i = a.size() - tail; i < a.size(); ++i) out.push_back({' ', a[i]});
  return out;
}

std::string hunk(const std::vector<Line>& lines, std::size_t begin, std::size_t end) {
  std::size_t old_line = 1;
  std::size_t new_line = 1;
  for (std::size_t i = 0; i < begin; ++i) {
    if (lines[i].mark != '+') ++old_line;
    if (lines[i].mark != '-') ++new_line;
  }
  std::size_t old_count = 0;
  std::size_t new_count = 0;
  std::string text;
  for (std::size_t i = begin; i < end; ++i) {
    if (lines[i].mark != '+') ++old_count;
    if (lines[i].mark != '-') ++new_count;
    text += lines[i].mark;
    text += lines[i].text;
    if (!lines[i].text.ends_with('\n')) text += "\n\\ No newline at end of file\n";
  }
  return fmt::format("@@ -{},{} +{},{} @@\n{}", old_count == 0 ? old_line - 1 : old_line, old_count,
                     new_count == 0 ? new_line - 1 : new_line, new_count, text);
}

}  // namespace

std::string unified_diff(std::string_view name, std::string_view before, std::string_view after) {
  if (before == after) return "";
  const auto lines = all_lines(split_lines(before), split_lines(after));
  std::string out = fmt::format("--- {}\n+++ {}\n", before.empty() ? "/dev/null" : name, name);
  for (std::size_t i = 0; i < lines.size();) {
    if (lines[i].mark == ' ') {
      ++i;
      continue;
    }
    const auto begin = i - std::min(i, kContextLines);
    auto last = i;
    for (auto j = i; j < lines.size() && j <= last + 2 * kContextLines; ++j) {
      if (lines[j].mark != ' ') last = j;
    }
    const auto end = std::min(last + 1 + kContextLines, lines.size());
    out += hunk(lines, begin, end);
    i = end;
  }
  return out;
}

}  // namespace gantry::engines
