// SPDX-License-Identifier: Apache-2.0
#include "gantry/scheduler.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

void add_election_flags(CLI::App& command, SchedulerFlags& flags) {
  command
      .add_option("--namespace", flags.name_space,
                  "Where the lease and the certificate are kept (environment: NAMESPACE); "
                  "kube-system")
      ->type_name("NAME");
  command
      .add_option("--identity", flags.identity,
                  "This replica's name in the lease (environment: POD_NAME)")
      ->type_name("NAME");
  command
      .add_option("--own-address", flags.own_address,
                  "Where other replicas reach this one, to hand on what only the leader may do "
                  "(environment: POD_IP)")
      ->type_name("ADDRESS");
  command
      .add_option("--leader-elect", flags.leader_elect,
                  "Bind only while holding the lease: needed where there are several replicas")
      ->type_name("BOOL")
      ->expected(0, 1)
      ->default_str("true");
  command
      .add_option("--leader-elect-lease-duration", flags.lease_duration,
                  "How long a leader that is gone is waited for")
      ->type_name("TIME")
      ->capture_default_str();
}

void add_webhook_flags(CLI::App& command, SchedulerFlags& flags) {
  command
      .add_option("--webhook", flags.webhook,
                  "on or off: fill in and check pods that ask for GPUs, over HTTPS")
      ->type_name("on|off")
      ->capture_default_str();
  command.add_option("--tls-port", flags.tls_port, "HTTPS port (environment: TLS_PORT); 8443")
      ->type_name("PORT");
  command
      .add_option("--cert-file,--cert_file", flags.certificate_file,
                  "Certificate of the webhook; without one it makes and renews its own")
      ->type_name("FILE");
  command.add_option("--key-file,--key_file", flags.key_file, "Key of that certificate")
      ->type_name("FILE");
  command
      .add_option("--service", flags.service,
                  "The Service by which the API server calls: its names are in the certificate")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--scheduler-name", flags.scheduler_name,
                  "schedulerName for pods that ask for GPUs and name none")
      ->type_name("NAME");
  command
      .add_option("--memory-unit", flags.memory_unit,
                  "GiB or MiB: what aliyun.com/gpu-mem counts, for the webhook (environment: "
                  "MEMORY_UNIT); to the scheduler each node says its own")
      ->type_name("UNIT");
  command
      .add_option("--trusted-user", flags.trusted,
                  "One more user who may write where a pod's shares are (again for more)")
      ->type_name("USER");
}

void add_log_flags(CLI::App& command, SchedulerFlags& flags) {
  command
      .add_option("--log-level", flags.log_level,
                  "debug, info, warn or error (environment: LOG_LEVEL)")
      ->type_name("LEVEL");
  command.add_option("--log-format", flags.log_format, "text or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

// What HAMi's manifests pass and nothing here needs: there is no lock on nodes, for one.
void add_flags_for_others(CLI::App& command, SchedulerFlags& flags) {
  for (const auto* name :
       {"--node-lock-timeout", "--node-lock-retry-timeout", "--force-overwrite-default-scheduler",
        "--legacy-metrics", "--device-config-file", "--metrics-bind-address"}) {
    command
        .add_option_function<std::string>(
            name,
            [&flags, name](const std::string& value) {
              flags.for_others.push_back(fmt::format("{}={}", name, value));
            },
            "")
        ->expected(0, 1)
        ->group("");
  }
}

}  // namespace

void add_scheduler_flags(CLI::App& command, SchedulerFlags& flags) {
  command
      .add_option("--port", flags.port,
                  "HTTP port of the extender (environment: PORT); 12345, gpushare's")
      ->type_name("PORT");
  command
      .add_option("--http-bind,--http_bind", flags.address,
                  "Address and port, as HAMi writes it: 0.0.0.0:9443")
      ->type_name("ADDRESS");
  command
      .add_option("--kubeconfig", flags.kubeconfig,
                  "Kubeconfig file (environment: KUBECONFIG; in a pod its service account)")
      ->type_name("FILE");
  command
      .add_option("--node-scheduler-policy", flags.node_policy,
                  "binpack or spread: which nodes are preferred")
      ->type_name("POLICY")
      ->capture_default_str();
  command
      .add_option("--gpu-scheduler-policy", flags.gpu_policy,
                  "binpack or spread: which GPU of a node is taken")
      ->type_name("POLICY")
      ->capture_default_str();
  command
      .add_option("--threads", flags.threads,
                  "Requests answered at the same time (environment: THREADNESS)")
      ->type_name("N");
  add_election_flags(command, flags);
  add_webhook_flags(command, flags);
  add_log_flags(command, flags);
  add_flags_for_others(command, flags);
}

}  // namespace gantry::cli
