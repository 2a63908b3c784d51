// SPDX-License-Identifier: Apache-2.0
#include "gantry/command.hpp"
#include "gantry/scheduler.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <string_view>

namespace gantry::cli {
namespace {

struct Row {
  const char* names;
  std::string SchedulerFlags::*value;
  const char* type;
  const char* help;  // a default that has no row of its own in SchedulerFlags is said here
};

constexpr std::array kRows{
    Row{"--port", &SchedulerFlags::port, "PORT",
        "HTTP port of the extender (environment: PORT); 12345, gpushare's"},
    Row{"--http-bind,--http_bind", &SchedulerFlags::address, "ADDRESS",
        "Address and port, as HAMi writes it: 0.0.0.0:9443"},
    Row{"--kubeconfig", &SchedulerFlags::kubeconfig, "FILE",
        "Kubeconfig file (environment: KUBECONFIG; in a pod its service account)"},
    Row{"--node-scheduler-policy", &SchedulerFlags::node_policy, "POLICY",
        "binpack or spread: which nodes are preferred"},
    Row{"--gpu-scheduler-policy", &SchedulerFlags::gpu_policy, "POLICY",
        "binpack or spread: which GPU of a node is taken"},
    Row{"--threads", &SchedulerFlags::threads, "N",
        "Requests answered at the same time (environment: THREADNESS)"},

    Row{"--namespace", &SchedulerFlags::name_space, "NAME",
        "Where the lease and the certificate are kept (environment: NAMESPACE); kube-system"},
    Row{"--identity", &SchedulerFlags::identity, "NAME",
        "This replica's name in the lease (environment: POD_NAME)"},
    Row{"--own-address", &SchedulerFlags::own_address, "ADDRESS",
        "Where other replicas reach this one, to hand on what only the leader may do "
        "(environment: POD_IP)"},
    Row{"--leader-elect", &SchedulerFlags::leader_elect, "BOOL",
        "Bind only while holding the lease: needed where there are several replicas"},
    Row{"--leader-elect-lease-duration", &SchedulerFlags::lease_duration, "TIME",
        "How long a leader that is gone is waited for"},

    Row{"--webhook", &SchedulerFlags::webhook, "on|off",
        "on or off: fill in and check pods that ask for GPUs, over HTTPS"},
    Row{"--tls-port", &SchedulerFlags::tls_port, "PORT",
        "HTTPS port (environment: TLS_PORT); 8443"},
    Row{"--cert-file,--cert_file", &SchedulerFlags::certificate_file, "FILE",
        "Certificate of the webhook; without one it makes and renews its own"},
    Row{"--key-file,--key_file", &SchedulerFlags::key_file, "FILE", "Key of that certificate"},
    Row{"--service", &SchedulerFlags::service, "NAME",
        "The Service by which the API server calls: its names are in the certificate"},
    Row{"--scheduler-name", &SchedulerFlags::scheduler_name, "NAME",
        "schedulerName for pods that ask for GPUs and name none"},
    Row{"--memory-unit", &SchedulerFlags::memory_unit, "UNIT",
        "GiB or MiB: what aliyun.com/gpu-mem counts, for the webhook (environment: MEMORY_UNIT); "
        "to the scheduler each node says its own"},

    Row{"--log-level", &SchedulerFlags::log_level, "LEVEL",
        "debug, info, warn or error (environment: LOG_LEVEL)"},
    Row{"--log-format", &SchedulerFlags::log_format, "FORMAT", "text or json"},
};

// What HAMi's manifests pass and nothing here needs: there is no lock on nodes, for one.
constexpr std::array kIgnoredFlags{
    "--node-lock-timeout", "--node-lock-retry-timeout", "--force-overwrite-default-scheduler",
    "--legacy-metrics",    "--device-config-file",      "--metrics-bind-address"};

void add_flags_for_others(CLI::App& command, SchedulerFlags& flags) {
  for (const auto* name : kIgnoredFlags) {
    const auto note = [&flags, name](const std::string& value) {
      flags.ignored_flags.push_back(fmt::format("{}={}", name, value));
    };
    command.add_option_function<std::string>(name, note, "")->expected(0, 1)->group("");
  }
}

}  // namespace

void add_scheduler_flags(CLI::App& command, SchedulerFlags& flags) {
  for (const auto& row : kRows) {
    auto* option = command.add_option(row.names, flags.*row.value, row.help)->type_name(row.type);
    if (!(flags.*row.value).empty()) option->capture_default_str();
    if (std::string_view(row.type) == "FILE") option->transform(absolute_path());
  }
  command.get_option("--leader-elect")->expected(0, 1);  // alone it means true
  command.get_option("--log-format")->check(CLI::IsMember({"text", "json"}));
  command
      .add_option("--trusted-user", flags.trusted,
                  "One more user who may write where a pod's shares are (again for more)")
      ->type_name("USER");
  add_flags_for_others(command, flags);
}

}  // namespace gantry::cli
