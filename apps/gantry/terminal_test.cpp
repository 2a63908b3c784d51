// SPDX-License-Identifier: Apache-2.0
#include "gantry/terminal.hpp"

#include "base/sys/unique_fd.hpp"
#include "gantry/command.hpp"
#include "gantry/table.hpp"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <array>

namespace gantry::cli {
namespace {

using testing::HasSubstr;

// A terminal of 60 columns, and what was written to it.
class Terminal {
 public:
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    ::grantpt(master_.get());
    ::unlockpt(master_.get());
    std::array<char, 128> name{};
    ::ptsname_r(master_.get(), name.data(), name.size());
    stream_ = std::fopen(name.data(), "r+e");
    const winsize size{.ws_row = 24, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(master_.get(), TIOCSWINSZ, &size);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() { std::fclose(stream_); }
  std::FILE* stream() { return stream_; }

  // Reads until the text has come, at most ten seconds.
  std::string read_until(std::string_view wanted) {
    std::string text;
    pollfd ready{.fd = master_.get(), .events = POLLIN, .revents = 0};
    while (text.find(wanted) == std::string::npos && ::poll(&ready, 1, 10'000) == 1) {
      std::array<char, 512> part{};
      const auto got = ::read(master_.get(), part.data(), part.size());
      if (got <= 0) break;
      text.append(part.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  sys::UniqueFd master_;
  std::FILE* stream_ = nullptr;
};

// Sets a variable for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = ::getenv(name)) old_ = old;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { old_.empty() ? ::unsetenv(name_) : ::setenv(name_, old_.c_str(), 1); }

 private:
  const char* name_;
  std::string old_;
};

TEST(TerminalWidth, IsThatOfTheTerminalAndZeroOfAFile) {
  Terminal terminal;
  EXPECT_EQ(terminal_width(terminal.stream()), 60U);
  std::FILE* file = std::tmpfile();
  EXPECT_EQ(terminal_width(file), 0U);
  std::fclose(file);
}

TEST(ShowsColor, NeitherWithNoColorNorOnADumbTerminal) {
  Terminal terminal;
  const Variable plain("NO_COLOR", nullptr);
  {
    const Variable kind("TERM", "xterm");
    EXPECT_TRUE(shows_color(terminal.stream()));
    const Variable refused("NO_COLOR", "1");
    EXPECT_FALSE(shows_color(terminal.stream()));
    EXPECT_TRUE(is_smart_terminal(terminal.stream()));
  }
  const Variable kind("TERM", "dumb");
  EXPECT_FALSE(shows_color(terminal.stream()));
  EXPECT_FALSE(is_smart_terminal(terminal.stream()));
}

TEST(Progress, SaysWhatItWaitsForAndClearsTheLine) {
  Terminal terminal;
  const Variable kind("TERM", "xterm");
  const Context context{.raw_err = terminal.stream()};
  {
    const Progress progress(context, "Waiting for NVML", std::chrono::milliseconds(1));
    EXPECT_THAT(terminal.read_until("s)"), HasSubstr("Waiting for NVML (0 s)"));
  }
  EXPECT_THAT(terminal.read_until("\r\x1b[K"), HasSubstr("\r\x1b[K"));
}

TEST(Progress, WritesNothingToAFile) {
  std::FILE* file = std::tmpfile();
  {
    const Context context{.raw_err = file};
    const Progress progress(context, "Waiting for NVML", std::chrono::milliseconds(0));
  }
  EXPECT_EQ(std::ftell(file), 0);
  std::fclose(file);
}

TEST(Wrap, BreaksBetweenWordsAndKeepsPathsWhole) {
  EXPECT_EQ(wrap("a bb ccc dddd", 2, 8), "a bb\n  ccc\n  dddd");
  EXPECT_EQ(wrap("/a/very/long/path end", 0, 6), "/a/very/long/path\nend");
}

TEST(Wrap, KeepsACommandInBackquotesWhole) {
  EXPECT_EQ(wrap("run `gantry info --json` now", 0, 12), "run\n`gantry info --json`\nnow");
  EXPECT_EQ(wrap("a ` b c", 0, 3), "a `\nb c") << "a single one is a character like any other";
}

TEST(WrapLines, GoOnBelowTheirLastColumn) {
  EXPECT_EQ(wrap_lines("short\n  name  one two three\n", 0), "short\n  name  one two three\n");
  EXPECT_EQ(wrap_lines("short\n  name  one two three\n", 16),
            "short\n  name  one two\n        three\n");
  EXPECT_EQ(wrap_lines("  a long first column  x y\n", 18), "  a long first\n  column x y\n");
  EXPECT_EQ(wrap_lines("-----\n", 3), "---\n");
  EXPECT_EQ(wrap_lines("\x1b[32mok\x1b[0m  a b\n", 7), "\x1b[32mok\x1b[0m  a b\n")
      << "colours take no room";
}

TEST(WrapHelp, KeepsTheColumnOfDescriptionsAndExamplesWhole) {
  const std::string help =
      "Usage\n  --flag  one two three four\nExamples:\n  gantry info --root /tmp/machine\n";
  EXPECT_EQ(wrap_help(help, 10, 20),
            "Usage\n  --flag  one two\n          three four\nExamples:\n"
            "  gantry info --root /tmp/machine\n");
  EXPECT_EQ(wrap_help(help, 10, 0), help);
}

TEST(FittingTable, WrapsItsLastColumn) {
  Table table({"STEP", "OUTCOME"});
  table.add({"docker", "has the runtime nvidia; to apply it restart docker now please"});
  EXPECT_EQ(table.text(40),
            "STEP    OUTCOME\n"
            "docker  has the runtime nvidia; to apply\n"
            "        it restart docker now please\n");
  EXPECT_EQ(table.text(), table.text(400));
}

// Where even the other columns do not fit, each row becomes a list.
TEST(FittingTable, BecomesAListOnANarrowTerminal) {
  Table table({"GPU", "NAME", "UUID", "HEALTH"});
  table.add({"0", "NVIDIA H200", "GPU-8d3c1f0e-0000-0000-0000-000000000000", "ok"});
  table.add({"1", "NVIDIA H200", "GPU-8d3c1f0e-0000-0000-0000-000000000001", "lost"});
  EXPECT_EQ(table.text(50),
            "GPU     0\n"
            "NAME    NVIDIA H200\n"
            "UUID    GPU-8d3c1f0e-0000-0000-0000-000000000000\n"
            "HEALTH  ok\n"
            "\n"
            "GPU     1\n"
            "NAME    NVIDIA H200\n"
            "UUID    GPU-8d3c1f0e-0000-0000-0000-000000000001\n"
            "HEALTH  lost\n");
}

}  // namespace
}  // namespace gantry::cli
