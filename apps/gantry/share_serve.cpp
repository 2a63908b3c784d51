// SPDX-License-Identifier: Apache-2.0
// gantry share serve: the share daemon.
#include "gantry/share_commands.hpp"
#include "sharing/daemon/serve.hpp"

#include <CLI/CLI.hpp>

namespace gantry::cli {
namespace {

Result<int> serve(bool until_idle, const Context& context) {
  GANTRY_TRY(auto host, open_host(context));
  GANTRY_CHECK(daemon::serve(
      {.host = std::move(host),
       .life = until_idle ? daemon::Lifetime::UntilIdle : daemon::Lifetime::UntilSignal,
       .sensor = {.program = {"/proc/self/exe", std::string(nvml_child::kChildCommand)}}}));
  return kOk;
}

}  // namespace

void add_share_serve(CLI::App& share, Context& context, Action& chosen) {
  auto until_idle = std::make_shared<bool>(false);
  auto* command = share.add_subcommand("serve", "Run the share daemon in the foreground");
  add_root_option(*command, context);
  command->add_flag(std::string(daemon::kUntilIdle), *until_idle,
                    "Exit when the last share is gone");
  add_examples(*command,
               "  gantry share serve                # `share run` and `share create` start it when "
               "needed\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return serve(*until_idle, c); }; });
}

}  // namespace gantry::cli
