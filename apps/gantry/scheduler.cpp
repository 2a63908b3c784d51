// SPDX-License-Identifier: Apache-2.0
// gantry scheduler: places pods on shared GPUs, as an extender of kube-scheduler.
#include "gantry/scheduler.hpp"

#include "gantry/commands.hpp"
#include "net/kube/client_config.hpp"
#include "node/agent/log.hpp"
#include "node/agent/signal_wait.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>

namespace gantry::cli {
namespace {

std::optional<std::string> environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

scheduler::Logger make_logger(const agent::Log& log, bool quiet) {
  return {
      .info =
          [log, quiet](std::string_view where, std::string_view text) {
            if (!quiet) log.info(where, text);
          },
      .warning = [log](std::string_view where, std::string_view text) { log.warning(where, text); },
      .detail = [log](std::string_view where,
                      std::string_view text) { log.detail(2, where, text); }};
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
  auto read = scheduler_settings(flags, environment);
  if (!read.ok()) {
    fmt::print(context.err, "gantry scheduler: {}\n", read.error().text());
    return kUsage;
  }
  auto& settings = *read;
  GANTRY_CHECK(read_certificate(settings));
  GANTRY_TRY(settings.options.access,
             kube::find_client_config(settings.kubeconfig, kube::Caller::Person)
                 .in("finding the API server"));
  const agent::Log log(settings.json_log ? options::LogFormat::Json : options::LogFormat::Text,
                       settings.verbosity);
  for (const auto& note : settings.notes) log.warning("options", note);
  GANTRY_TRY(const auto signals, agent::SignalWait::make());
  GANTRY_TRY(const auto scheduler, scheduler::Scheduler::start(std::move(settings.options),
                                                               make_logger(log, settings.quiet)));
  while (signals.wait(options::kInfinite) != agent::WakeReason::End) {
  }
  log.info("scheduler", "shutting down: pending Bindings are finished, the lease is released");
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
