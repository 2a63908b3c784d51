// SPDX-License-Identifier: Apache-2.0
// The flags and environment variables of `gantry scheduler`: Gantry's, gpushare's and HAMi's.
#pragma once

#include "base/core/result.hpp"
#include "cluster/scheduler/scheduler.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own name
class App;
}  // namespace CLI

namespace gantry::cli {

using EnvironmentLookup = std::function<std::optional<std::string>(std::string_view name)>;

// The values as typed; "" if not given.
struct SchedulerFlags {
  std::string address;
  std::string port;
  std::string kubeconfig;
  std::string name_space;
  std::string identity;
  std::string log_format = "text";
  std::string log_level;
  std::string threads;
  std::string memory_unit;
  std::string node_policy = "binpack";
  std::string gpu_policy = "binpack";
  std::string leader_elect = "true";
  std::string lease_duration = "15s";
  std::string own_address;
  std::string webhook = "on";
  std::string tls_port;
  std::string certificate_file;
  std::string key_file;
  std::string service = "gantry-scheduler";
  std::string scheduler_name;
  std::string runtime_class;
  std::vector<std::string> trusted;
  std::vector<std::string> ignored_flags;  // flags of other schedulers that have no effect here
};

void add_scheduler_flags(CLI::App& command, SchedulerFlags& flags);

struct SchedulerSettings {
  scheduler::SchedulerOptions options;  // without the API access, which must be found first
  std::string certificate_file;         // to be read
  std::string key_file;
  std::string kubeconfig;
  std::int64_t verbosity = 0;
  bool json_log = false;
  bool quiet = false;  // warnings only
};

// A flag wins over the environment, which wins over the default. Invalid if a value is wrong; the
// error names the flag or variable and the values it accepts.
Result<SchedulerSettings> scheduler_settings(const SchedulerFlags& flags,
                                             const EnvironmentLookup& env);

}  // namespace gantry::cli
