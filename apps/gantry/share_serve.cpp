// SPDX-License-Identifier: Apache-2.0
// gantry share serve: the share daemon; gantry share watch: its watchdog.
#include "gantry/share_commands.hpp"
#include "sharing/backend/shares.hpp"
#include "sharing/daemon/log_file.hpp"
#include "sharing/daemon/serve.hpp"
#include "sharing/daemon/watchdog.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>

namespace gantry::cli {
namespace {

struct ServeFlags {
  bool until_idle = false;
  bool no_watchdog = false;
};

Result<int> serve(const ServeFlags& flags, const Context& context) {
  GANTRY_TRY(auto host, open_host(context));
  std::vector<std::string> watchdog;
  if (!flags.no_watchdog) watchdog = backend::watchdog_command(host);
  GANTRY_CHECK(daemon::serve(
      {.host = std::move(host),
       .life = flags.until_idle ? daemon::Lifetime::UntilIdle : daemon::Lifetime::UntilSignal,
       .sensor = {},
       .watchdog = std::move(watchdog)}));
  return kOk;
}

Result<int> watch(const Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  const auto sink = [path = host.outside(daemon::kLogPath)](std::string_view line) {
    write_to_stderr(line);
    daemon::rotate_if_large(STDERR_FILENO, path);
  };
  GANTRY_CHECK(daemon::watch_over_daemon({.host = host, .program = backend::daemon_command()},
                                         Log(LogForm::Json, 0, sink).component_key("share")));
  return kOk;
}

}  // namespace

void add_share_serve(CLI::App& share, Context& context, Action& chosen) {
  auto flags = std::make_shared<ServeFlags>();
  auto* command = share.add_subcommand("serve", "Run the share daemon in the foreground");
  add_root_option(*command, context);
  command->add_flag(std::string(daemon::kUntilIdle), flags->until_idle,
                    "Exit when the last share is gone");
  command->add_flag("--no-watchdog", flags->no_watchdog,
                    "Do not start `gantry share watch`; for a supervisor that restarts the daemon");
  add_examples(*command,
               "  gantry share serve                # `share run` and `share create` start it when "
               "needed\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return serve(*flags, c); }; });
}

void add_share_watch(CLI::App& share, Context& context, Action& chosen) {
  auto* command = share.add_subcommand(
      "watch", "Restart the share daemon if it is killed or hangs; the daemon starts this itself");
  add_root_option(*command, context);
  add_examples(*command, "  gantry share watch\n");
  command->callback([&chosen] { chosen = [](Context& c) { return watch(c); }; });
}

}  // namespace gantry::cli
