// SPDX-License-Identifier: Apache-2.0
// gantry share ls and top: the limits and the usage of shares.
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "gantry/share_commands.hpp"
#include "gantry/share_table.hpp"
#include "sharing/backend/share_device.hpp"
#include "sharing/backend/shares.hpp"

#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace gantry::cli {
namespace {

struct TopOptions {
  bool once = false;
  bool wide = false;
  double every = 1;
};

std::string refuse_pause(const std::string& text) {
  double seconds = 0;
  const bool is_number = CLI::detail::lexical_cast(text, seconds);
  if (is_number && seconds >= 0.1 && seconds <= 3600) return "";
  return fmt::format("`{}` is not a number of seconds from 0.1 to 3600", text);
}

std::string shares_json(const std::vector<daemon::ShareState>& shares) {
  json::Writer out(json::Layout::Rows);
  out.array(shares, [&](const daemon::ShareState& share) { out.raw(daemon::to_document(share)); });
  return out.text() + "\n";
}

Result<int> list_shares(Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto shares, backend::list_all_shares(host));
  const auto table = [&] {
    return printable_lines(shares_table(shares, {.width = context.columns, .root = context.root}));
  };
  fmt::print(context.out, "{}", context.json ? shares_json(shares) : table());
  return kOk;
}

// The share daemon knows only the names of programs: reading a command line may block for as long
// as the process likes.
void read_command_lines(std::vector<daemon::ShareState>& shares) {
  constexpr std::size_t kMaxCommandLineBytes = 4096;
  const auto machine = sys::Host::at("/");
  if (!machine.ok()) return;
  for (auto& state : shares) {
    for (auto& process : state.processes) {
      auto line = machine->read(fmt::format("/proc/{}/cmdline", process.pid), kMaxCommandLineBytes)
                      .value_or("");
      std::replace(line.begin(), line.end(), '\0', ' ');
      if (const auto text = trim(line); !text.empty()) process.command = printable(text);
    }
  }
}

// Waits. Returns early if the user typed q and Enter or the terminal is gone.
bool goes_on(double seconds) {
  pollfd keys{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  const bool typed = ::isatty(STDIN_FILENO) == 1;
  const int ready = ::poll(&keys, typed ? 1 : 0, static_cast<int>(seconds * 1000));
  if (ready <= 0) return true;
  char key = 0;
  return ::read(STDIN_FILENO, &key, 1) == 1 && key != 'q';
}

Result<int> top(const TopOptions& options, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  // JSON is for programs, so the screen is not cleared.
  const bool live = !options.once && !context.json && context.terminal;
  auto* const out = live ? context.raw_out : context.out;
  if (live) fmt::print(out, "\x1b[2J");
  do {
    GANTRY_TRY(auto shares, backend::list_all_shares(host));
    if (!context.json) read_command_lines(shares);
    context.measure_terminal();
    const Screen screen{
        .width = context.columns, .root = context.root, .whole_commands = options.wide};
    const auto table = [&] { return printable_lines(usage_table(shares, screen)); };
    const auto picture = context.json ? shares_json(shares) : table();
    // Draws over the previous screen and clears the rest of each line, which avoids flicker.
    std::string text = live ? "\x1b[H" : "";
    for (const char c : picture) {
      if (live && c == '\n') text += "\x1b[K";
      text += c;
    }
    fmt::print(out, "{}{}", text, live ? "\x1b[J" : "");
    std::fflush(context.raw_out);
  } while (live && goes_on(options.every));
  return kOk;
}

}  // namespace

void add_share_list(CLI::App& share, Context& context, Action& chosen) {
  auto* command = share.add_subcommand("ls", "List the shares of this machine and their limits");
  add_machine_options(*command, context);
  add_examples(*command, "  gantry share ls\n  gantry share ls --json | jq '.[].share.name'\n");
  command->callback([&chosen] { chosen = [](Context& c) { return list_shares(c); }; });
}

void add_share_top(CLI::App& share, Context& context, Action& chosen) {
  auto options = std::make_shared<TopOptions>();
  auto* command = share.add_subcommand(
      "top", "Show what each share uses: live on a terminal (end with Ctrl-C), else once");
  add_machine_options(*command, context);
  command->add_flag("--once", options->once, "Print once and exit");
  command->add_flag("--wide", options->wide, "Do not cut commands at the edge of the terminal");
  command->add_option("--every", options->every, "Seconds between updates")
      ->type_name("SECONDS")
      ->check(CLI::Validator(refuse_pause, ""))
      ->capture_default_str();
  add_examples(*command, "  gantry share top\n  gantry share top --once --json\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return top(*options, c); }; });
}

}  // namespace gantry::cli
