// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "gantry/scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace gantry::cli {
namespace {

Error wrong(std::string_view what, std::string_view value, std::string_view instead) {
  return {Errc::Invalid, fmt::format("{}: `{}` is not {}", what, value, instead)};
}

// The flag's value, else the environment's.
std::string chosen(const std::string& flag, const EnvironmentLookup& env, std::string_view variable,
                   std::string_view otherwise) {
  if (!flag.empty()) return flag;
  return env(variable).value_or(std::string(otherwise));
}

// The source of the value, for error messages: someone who set a variable in a manifest looks for
// its name.
std::string_view said_by(const std::string& flag, std::string_view option,
                         std::string_view variable) {
  return flag.empty() ? variable : option;
}

Result<std::uint64_t> number(std::string_view what, const std::string& text, std::uint64_t least,
                             std::uint64_t most) {
  const auto value = parse_u64(text);
  if (!value || *value < least || *value > most)
    return wrong(what, text, fmt::format("a number from {} to {}", least, most));
  return *value;
}

Result<podspec::PlacementPolicy> order_of(std::string_view what, const std::string& text) {
  const auto word = to_lower(text);
  if (word == "binpack" || word == "pack") return podspec::PlacementPolicy::Pack;
  if (word == "spread") return podspec::PlacementPolicy::Spread;
  return wrong(what, text, "binpack or spread");
}

Result<bool> truth_of(std::string_view what, const std::string& text, std::string_view words) {
  const auto word = to_lower(text);
  if (word == "true" || word == "1" || word == "on" || word == "yes") return true;
  if (word == "false" || word == "0" || word == "off" || word == "no") return false;
  return wrong(what, text, words);
}

Status set_address(const SchedulerFlags& flags, const EnvironmentLookup& env,
                   scheduler::SchedulerOptions& options) {
  if (!flags.address.empty()) {
    GANTRY_TRY(options.address, http::parse_address(flags.address).in("--http-bind"));
  }
  if (!flags.address.empty() && flags.port.empty()) return {};
  GANTRY_TRY(const auto port, number(said_by(flags.port, "--port", "PORT"),
                                     chosen(flags.port, env, "PORT", "12345"), 0, 65535));
  options.address.port = static_cast<std::uint16_t>(port);
  return {};
}

// gpushare's THREADNESS is the number of threads that follow pods; here it is the number that
// answer requests.
Status set_threads(const SchedulerFlags& flags, const EnvironmentLookup& env,
                   scheduler::SchedulerOptions& options) {
  const auto text = chosen(flags.threads, env, "THREADNESS", "");
  if (text.empty()) {
    options.threads = std::clamp(std::thread::hardware_concurrency() * 2, 8U, 32U);
    return {};
  }
  GANTRY_TRY(const auto value,
             number(said_by(flags.threads, "--threads", "THREADNESS"), text, 1, 256));
  options.threads = std::max(2U, static_cast<unsigned>(value));
  return {};
}

Status set_log(const SchedulerFlags& flags, const EnvironmentLookup& env,
               SchedulerSettings& settings) {
  settings.json_log = flags.log_format == "json";
  const auto text = chosen(flags.log_level, env, "LOG_LEVEL", "info");
  const auto level = to_lower(text);
  if (level != "debug" && level != "info" && level != "warn" && level != "error")
    return wrong(said_by(flags.log_level, "--log-level", "LOG_LEVEL"), text,
                 "debug, info, warn or error");
  settings.verbosity = level == "debug" ? 4 : 0;
  settings.quiet = level == "warn" || level == "error";
  return {};
}

// "15s", or a plain number of seconds. The other intervals keep the default ratio of 15, 10 and 2.
Status set_lease_times(const std::string& text, kube::LeaseOptions& lease) {
  std::string_view digits = text;
  if (digits.ends_with('s')) digits.remove_suffix(1);
  const auto seconds = parse_u64(digits);
  if (!seconds || *seconds < 6 || *seconds > 3600)
    return wrong("--leader-elect-lease-duration", text, "6s to 3600s");
  const auto whole = static_cast<std::int64_t>(*seconds);
  lease.duration = std::chrono::seconds(whole);
  lease.renew = std::chrono::seconds(whole * 2 / 3);
  lease.retry = std::chrono::seconds(std::max<std::int64_t>(1, whole * 2 / 15));
  return {};
}

Status set_election(const SchedulerFlags& flags, const EnvironmentLookup& env,
                    scheduler::SchedulerOptions& options) {
  GANTRY_TRY(const auto elect, truth_of("--leader-elect", flags.leader_elect, "true or false"));
  options.election = elect ? scheduler::Election::On : scheduler::Election::Off;
  options.lease.name_space =
      chosen(flags.name_space, env, "NAMESPACE", env("POD_NAMESPACE").value_or("kube-system"));
  options.lease.identity = chosen(flags.identity, env, "POD_NAME", "");
  options.own_address = chosen(flags.own_address, env, "POD_IP", "");
  if (options.lease.identity.empty())
    options.own_address.clear();  // other replicas could not name this one
  return set_lease_times(flags.lease_duration, options.lease);
}

// The users who may write a pod's placement: this scheduler and the agent, by the names in our
// manifests, and the users that the flag names.
std::vector<std::string> trusted_users(const SchedulerFlags& flags, const std::string& space) {
  std::vector<std::string> users;
  for (const auto* record : {"gpushare-schd-extender", "gpushare-device-plugin", "gantry-scheduler",
                             "gantry-agent", "gantry"})
    users.push_back(fmt::format("system:serviceaccount:{}:{}", space, record));
  users.insert(users.end(), flags.trusted.begin(), flags.trusted.end());
  return users;
}

Status set_webhook(const SchedulerFlags& flags, const EnvironmentLookup& env,
                   SchedulerSettings& settings) {
  GANTRY_TRY(const auto on, truth_of("--webhook", flags.webhook, "on or off"));
  if (!on) return {};
  scheduler::WebhookOptions webhook;
  GANTRY_TRY(const auto port, number(said_by(flags.tls_port, "--tls-port", "TLS_PORT"),
                                     chosen(flags.tls_port, env, "TLS_PORT", "8443"), 0, 65535));
  webhook.address = {.host = settings.options.address.host,
                     .port = static_cast<std::uint16_t>(port)};
  const auto written = chosen(flags.memory_unit, env, "MEMORY_UNIT", "GiB");
  const auto unit = to_lower(written);
  if (unit != "gib" && unit != "mib")
    return wrong(said_by(flags.memory_unit, "--memory-unit", "MEMORY_UNIT"), written, "GiB or MiB");
  const auto& space = settings.options.lease.name_space;
  webhook.policy = {.unit_mib = unit == "mib" ? 1U : 1024U,
                    .scheduler_name = flags.scheduler_name,
                    .runtime_class = chosen(flags.runtime_class, env, "GPU_RUNTIME_CLASS", ""),
                    .trusted = trusted_users(flags, space)};
  webhook.certificate = {.name_space = space,
                         .names = webhook::service_names(flags.service, space),
                         .mutating = {"gantry-scheduler"},
                         .validating = {"gantry-scheduler"}};
  if (flags.certificate_file.empty() != flags.key_file.empty())
    return Error(Errc::Invalid, "--cert-file and --key-file must be given together");
  settings.certificate_file = flags.certificate_file;
  settings.key_file = flags.key_file;
  settings.options.webhook = std::move(webhook);
  return {};
}

}  // namespace

Result<SchedulerSettings> scheduler_settings(const SchedulerFlags& flags,
                                             const EnvironmentLookup& env) {
  SchedulerSettings settings;
  auto& options = settings.options;
  settings.kubeconfig = flags.kubeconfig;
  GANTRY_CHECK(set_address(flags, env, options));
  GANTRY_CHECK(set_threads(flags, env, options));
  GANTRY_CHECK(set_log(flags, env, settings));
  GANTRY_CHECK(set_election(flags, env, options));
  GANTRY_TRY(options.place.nodes, order_of("--node-scheduler-policy", flags.node_policy));
  GANTRY_TRY(options.place.gpus, order_of("--gpu-scheduler-policy", flags.gpu_policy));
  GANTRY_CHECK(set_webhook(flags, env, settings));
  return settings;
}

}  // namespace gantry::cli
