// SPDX-License-Identifier: Apache-2.0
// gantry scheduler: places pods on shared GPUs, as an extender of kube-scheduler.
#include "gantry/scheduler.hpp"

#include "base/log/log.hpp"
#include "gantry/commands.hpp"
#include "net/kube/client_config.hpp"
#include "node/agent/signal_wait.hpp"
#include "node/options/options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>

namespace gantry::cli {
namespace {

std::optional<std::string> nonempty_variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

Status read_certificate(SchedulerSettings& settings) {
  if (settings.certificate_file.empty() || !settings.options.webhook) return {};
  GANTRY_TRY(const auto machine, sys::Host::at("/"));
  auto& given = settings.options.webhook->given;
  GANTRY_TRY(given.certificates, machine.read(settings.certificate_file).in("--cert-file"));
  GANTRY_TRY(given.key, machine.read(settings.key_file).in("--key-file"));
  return {};
}

Result<int> schedule_pods(const SchedulerFlags& flags, const Context& context) {
  auto read = scheduler_settings(flags, nonempty_variable);
  if (!read.ok()) {
    fmt::print(context.err, "gantry scheduler: {}\n", read.error().text());
    return kUsage;
  }
  auto& settings = *read;
  GANTRY_CHECK(read_certificate(settings));
  GANTRY_TRY(settings.options.access,
             kube::find_client_config(settings.kubeconfig, kube::Caller::Person)
                 .in("finding the API server"));
  const Log log(settings.json_log ? LogForm::Json : LogForm::Klog, settings.verbosity);
  for (const auto& flag : flags.ignored_flags)
    log.warning("options", "a flag of another scheduler has no effect here", {{"flag", flag}});
  GANTRY_TRY(const auto signals, agent::SignalWait::make());
  GANTRY_TRY(const auto scheduler, scheduler::Scheduler::start(
                                       std::move(settings.options),
                                       settings.quiet ? log.starting_at(LogLevel::Warning) : log));
  while (signals.wait(options::kInfinite) != agent::WakeReason::End) {
  }
  log.info("scheduler", "shutting down: finishing pending Bindings, releasing the lease");
  scheduler->stop();
  return kOk;
}

}  // namespace

void add_scheduler(CLI::App& app, Context& /*context*/, Action& chosen) {
  auto* command = app.add_subcommand(
      "scheduler", "Place pods on shared GPUs: an extender of kube-scheduler, and its webhook");
  const auto flags = std::make_shared<SchedulerFlags>();
  add_scheduler_flags(*command, *flags);
  add_examples(*command,
               "  gantry scheduler                           # in a pod: deploy/gpushare\n"
               "  gantry scheduler --kubeconfig ~/.kube/config --port 12345 --leader-elect=false\n"
               "  curl -s localhost:12345/gpushare-scheduler/inspect\n");
  command->callback(
      [=, &chosen] { chosen = [=](Context& context) { return schedule_pods(*flags, context); }; });
}

}  // namespace gantry::cli
