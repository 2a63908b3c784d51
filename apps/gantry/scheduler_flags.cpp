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
  const char* help;  // a default that SchedulerFlags does not hold is named in the help
};

constexpr std::array kRows{
    Row{"--port", &SchedulerFlags::port, "PORT",
        "HTTP port of the extender (environment: PORT; default: 12345, as gpushare's)"},
    Row{"--http-bind,--http_bind", &SchedulerFlags::address, "ADDRESS",
        "Address and port, as HAMi writes it: 0.0.0.0:9443"},
    Row{"--kubeconfig", &SchedulerFlags::kubeconfig, "FILE",
        "Kubeconfig file (environment: KUBECONFIG; default in a pod: its service account)"},
    Row{"--node-scheduler-policy", &SchedulerFlags::node_policy, "POLICY",
        "Which nodes to prefer: binpack or spread"},
    Row{"--gpu-scheduler-policy", &SchedulerFlags::gpu_policy, "POLICY",
        "Which GPU of a node to use: binpack or spread"},
    Row{"--threads", &SchedulerFlags::threads, "N",
        "Requests answered at the same time (environment: THREADNESS)"},

    Row{"--namespace", &SchedulerFlags::name_space, "NAME",
        "Namespace of the lease and the certificate (environment: NAMESPACE; default: "
        "kube-system)"},
    Row{"--identity", &SchedulerFlags::identity, "NAME",
        "This replica's name in the lease (environment: POD_NAME)"},
    Row{"--own-address", &SchedulerFlags::own_address, "ADDRESS",
        "Address at which other replicas reach this one, to forward requests that only the leader "
        "may handle (environment: POD_IP)"},
    Row{"--leader-elect", &SchedulerFlags::leader_elect, "BOOL",
        "Bind only while holding the lease; needed if there are several replicas"},
    Row{"--leader-elect-lease-duration", &SchedulerFlags::lease_duration, "TIME",
        "How long to wait for a leader that is gone"},

    Row{"--webhook", &SchedulerFlags::webhook, "on|off",
        "Webhook that completes and checks pods that request GPUs, over HTTPS: on or off"},
    Row{"--tls-port", &SchedulerFlags::tls_port, "PORT",
        "HTTPS port (environment: TLS_PORT; default: 8443)"},
    Row{"--cert-file,--cert_file", &SchedulerFlags::certificate_file, "FILE",
        "Certificate of the webhook (default: the scheduler creates and renews its own)"},
    Row{"--key-file,--key_file", &SchedulerFlags::key_file, "FILE", "Key of that certificate"},
    Row{"--service", &SchedulerFlags::service, "NAME",
        "The Service through which the API server calls the webhook; the certificate has its "
        "names"},
    Row{"--scheduler-name", &SchedulerFlags::scheduler_name, "NAME",
        "schedulerName for pods that request GPUs and have none"},
    Row{"--runtime-class", &SchedulerFlags::runtime_class, "NAME",
        "runtimeClassName for pods that request GPUs and have none: for nodes that share GPUs and "
        "whose engine has no CDI (environment: GPU_RUNTIME_CLASS)"},
    Row{"--memory-unit", &SchedulerFlags::memory_unit, "UNIT",
        "Unit of aliyun.com/gpu-mem for the webhook: GiB or MiB (environment: MEMORY_UNIT); the "
        "scheduler reads each node's unit from the node"},

    Row{"--log-level", &SchedulerFlags::log_level, "LEVEL",
        "debug, info, warn or error (environment: LOG_LEVEL)"},
    Row{"--log-format", &SchedulerFlags::log_format, "FORMAT", "text or json"},
};

// Flags in HAMi's manifests that have no use here; for example, there is no lock on nodes.
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
      .add_option(
          "--trusted-user", flags.trusted,
          "Another user who may write the annotations that place a pod's shares (may be repeated)")
      ->type_name("USER");
  add_flags_for_others(command, flags);
}

}  // namespace gantry::cli
