// SPDX-License-Identifier: Apache-2.0
#include "gantry/terminal.hpp"

#include "base/core/text.hpp"
#include "gantry/command.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

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
  for (const auto word : split(text, ' ')) {
    if (word.empty()) continue;
    if (column > indent && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
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
