// SPDX-License-Identifier: Apache-2.0
#include "gantry/terminal.hpp"

#include "base/core/text.hpp"
#include "gantry/command.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace gantry::cli {
namespace {

constexpr std::size_t kNarrowest = 40;  // below this, wrapped text is harder to read than cut lines

bool is_terminal(std::FILE* stream) {
  return ::isatty(::fileno(stream)) == 1;
}

// The column at which a line of help goes on: that of its description.
std::size_t hanging_indent(std::string_view line, std::size_t column) {
  const auto first = line.find_first_not_of(' ');
  if (first == 0 || line.size() <= column || line[column - 1] != ' ') return first;
  return column;
}

// In characters, without the sequences that set colours ("\x1b[32m").
std::size_t visible_size(std::string_view text) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size() - 1);
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) {
      ++size;
    }
  }
  return size;
}

// Removes the next word from `text`: up to a space that is not in backquotes.
std::string_view take_word(std::string_view& text) {
  auto end = std::min(text.find(' '), text.size());
  const auto opening = text.substr(0, end).find('`');
  if (opening != std::string_view::npos) {
    const auto closing = text.find('`', opening + 1);
    if (closing != std::string_view::npos && closing > end)
      end = std::min(text.find(' ', closing), text.size());
  }
  const auto word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

// Where the last column of the line begins, if that leaves a quarter of the width to it.
std::size_t last_column(std::string_view line, std::size_t width) {
  auto column = std::min(line.find_first_not_of(' '), line.size());
  for (auto at = line.find("  ", column); at != std::string_view::npos; at = line.find("  ", at)) {
    at = std::min(line.find_first_not_of(' ', at), line.size());
    if (visible_size(line.substr(0, at)) > width * 3 / 4) break;
    column = at;
  }
  return column;
}

bool is_rule(std::string_view line) {
  return line.find_first_not_of('-') == std::string_view::npos;
}

}  // namespace

std::size_t terminal_width(std::FILE* stream) {
  winsize size{};
  if (!is_terminal(stream)) return 0;
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col != 0)
    return std::max<std::size_t>(size.ws_col, kNarrowest);
  const char* columns = std::getenv("COLUMNS");
  const auto known = parse_u64(columns == nullptr ? "" : columns);
  return known ? std::max<std::size_t>(*known, kNarrowest) : 80;
}

bool is_smart_terminal(std::FILE* stream) {
  const char* kind = std::getenv("TERM");
  return is_terminal(stream) && kind != nullptr && *kind != '\0' &&
         std::string_view(kind) != "dumb";
}

bool shows_color(std::FILE* stream) {
  const char* refused = std::getenv("NO_COLOR");
  return is_smart_terminal(stream) && (refused == nullptr || *refused == '\0');
}

std::string wrap(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const auto word = take_word(text);
    if (word.empty()) continue;
    const auto size = visible_size(word);
    if (column > indent && column + 1 + size > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += size;
  }
  return out;
}

std::string wrap_lines(std::string_view text, std::size_t width) {
  if (width == 0) return std::string(text);
  std::string out;
  for (const auto line : lines(text)) {
    if (visible_size(line) <= width || is_rule(line)) {
      out += fmt::format("{}\n", is_rule(line) ? line.substr(0, width) : line);
      continue;
    }
    const auto column = last_column(line, width);
    const auto before = line.substr(0, column);
    out += fmt::format("{}{}\n", before, wrap(line.substr(column), visible_size(before), width));
  }
  return out;
}

std::string wrap_help(std::string_view help, std::size_t column, std::size_t width) {
  std::string out;
  bool examples = false;
  for (const auto line : lines(help)) {
    examples = examples || line == "Examples:";
    if (examples || width == 0 || line.size() <= width) {
      out += fmt::format("{}\n", line);
      continue;
    }
    const auto indent = hanging_indent(line, column);
    out += fmt::format("{}{}\n", line.substr(0, indent), wrap(line.substr(indent), indent, width));
  }
  return out;
}

Progress::Progress(const Context& context, std::string what, std::chrono::milliseconds quiet)
    : err_(context.raw_err) {
  if (!is_terminal(err_) || context.quiet) return;
  thread_ = std::jthread([this, what = std::move(what), quiet](const std::stop_token& stop) {
    show(stop, what, quiet);
  });
}

Progress::~Progress() = default;  // the thread's own destructor asks it to stop and waits

// On a terminal that cannot rewrite a line, the line is printed once.
void Progress::show(const std::stop_token& stop, const std::string& what,
                    std::chrono::milliseconds quiet) {
  const auto start = std::chrono::steady_clock::now();
  const bool rewrites = is_smart_terminal(err_);
  std::unique_lock lock(mutex_);
  auto pause = quiet;
  bool shown = false;
  while (!ended_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) {
    const auto waited =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
    fmt::print(err_, "{}{} ({} s){}", rewrites ? "\r" : "", what, waited.count(),
               rewrites ? "\x1b[K" : "\n");
    std::fflush(err_);
    shown = true;
    pause = rewrites ? std::chrono::milliseconds(1000) : std::chrono::milliseconds(10'000);
  }
  if (!shown || !rewrites) return;
  fmt::print(err_, "\r\x1b[K");
  std::fflush(err_);
}

}  // namespace gantry::cli
