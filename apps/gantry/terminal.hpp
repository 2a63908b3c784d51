// SPDX-License-Identifier: Apache-2.0
// What the terminal can show, text that fits its width, and a line that says what we wait for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace gantry::cli {

struct Context;

// The width of the terminal that the stream writes to; 0 if it is not a terminal.
std::size_t terminal_width(std::FILE* stream);

// The stream is a terminal that understands escape sequences: TERM is set and is not `dumb`.
bool is_smart_terminal(std::FILE* stream);

// The same, and NO_COLOR is not set.
bool shows_color(std::FILE* stream);

// Breaks the text between words, so that no line is longer than `width`. Following lines are
// indented; the first starts at column `indent`. A word that is too long stays whole, so that a
// path can be copied, and so does what stands in backquotes.
std::string wrap(std::string_view text, std::size_t indent, std::size_t width);

// Breaks the lines that are longer than `width`; they go on below their last column. A command in
// backquotes stays whole, so that it can be pasted. Escape sequences of colours take no room. 0: no
// limit.
std::string wrap_lines(std::string_view text, std::size_t width);

// Breaks the long lines of a command's help; examples stay, so that they can be pasted. `column` is
// where descriptions begin.
std::string wrap_help(std::string_view help, std::size_t column, std::size_t width);

// While it exists, and after two seconds, stderr shows what the program waits for and how long it
// has waited, if stderr is a terminal. The line is cleared at the end.
class Progress {
 public:
  Progress(const Context& context, std::string what,
           std::chrono::milliseconds quiet = std::chrono::seconds(2));
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void show(const std::stop_token& stop, const std::string& what, std::chrono::milliseconds quiet);
  std::FILE* err_;
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

// Runs work that may have to wait for the driver.
template <class Work>
auto while_waiting(const Context& context, Work&& work) {
  const Progress progress(context, "Waiting for the driver to answer");
  return work();
}

}  // namespace gantry::cli
