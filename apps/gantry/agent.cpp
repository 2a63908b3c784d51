// SPDX-License-Identifier: Apache-2.0
#include "gantry/agent.hpp"

#include "node/agent/agent.hpp"
#include "node/agent/feature_discovery.hpp"
#include "node/agent/gke_log.hpp"
#include "node/agent/mps_daemon.hpp"
#include "node/options/config_watcher.hpp"
#include "sharing/backend/share_device.hpp"

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <mutex>

namespace gantry::cli {
namespace {

std::optional<std::string> environment_variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

Result<std::string> read_file(const std::string& path) {
  GANTRY_TRY(const auto machine, sys::Host::at("/"));
  return machine.read(path);
}

// If the cluster has several configurations, the node's label names one. That file is used in place
// of CONFIG_FILE. When it changes, the agent sends itself SIGHUP.
class NodeFile {
 public:
  // Does nothing if no configuration was requested.
  Status choose() {
    GANTRY_TRY(setting_, options::read_settings(environment_variable));
    if (!setting_ || environment_variable("CONFIG_FILE")) return {};
    GANTRY_TRY(access_, kube::find_client_config("", kube::Caller::Node));
    kube::Api api(*access_);
    GANTRY_TRY(
        file_,
        options::current_config_file(api, *setting_).in("choosing this node's configuration"));
    return {};
  }

  // Start this after the agent has blocked SIGHUP: this thread must not receive the signal.
  void watch(const Log& log) {
    if (!access_) return;
    log.info("options", "chose the configuration of this node", {{"file", current()}});
    watch_ = std::make_unique<options::ConfigWatcher>(
        *access_, *setting_, current(),
        options::ConfigWatcher::Callbacks{
            .changed =
                [this, log](const std::string& file) {
                  log.info("options", "the configuration of this node changed", {{"file", file}});
                  {
                    const std::lock_guard hold(mutex_);
                    file_ = file;
                  }
                  ::kill(::getpid(), SIGHUP);
                },
            .failed =
                [log](const std::string& why) {
                  log.warning("options", "cannot watch the configuration of this node",
                              {{"err", why}});
                }});
  }

  std::optional<std::string> variable(std::string_view name) const {
    auto value = environment_variable(name);
    if (value || name != "CONFIG_FILE" || !access_) return value;
    return current();
  }

 private:
  std::string current() const {
    const std::lock_guard hold(mutex_);
    return file_;
  }

  std::optional<options::ConfigManagerSettings> setting_;
  std::optional<kube::ClientConfig> access_;
  mutable std::mutex mutex_;
  std::string file_;
  std::unique_ptr<options::ConfigWatcher> watch_;
};

int failed(const Error& error, std::string_view name, int status, std::FILE* err) {
  fmt::print(err, "{}: {}\n", name, error.text());
  return status;
}

void say_notes(const options::ParsedOptions& read, const Log& log) {
  if (read.options.program != options::Program::Gke) return;
  const agent::GkeLog gke_log(log, read.options.gke.plugin_directory);
  gke_log.started();
  gke_log.options(read.notes);
}

// Searched once: the image does not change while the agent runs.
agent::Agent::SpecOptions spec_options_once() {
  const auto found = std::make_shared<std::optional<publish::ShareSpecOptions>>();
  return [found](const sys::Host& host) -> Result<publish::ShareSpecOptions> {
    if (!*found) {
      GANTRY_TRY(*found, backend::share_spec_options(host));
    }
    return **found;
  };
}

int run_agent_program(options::Program program, std::string_view name, int argc, char** argv,
                      std::FILE* out, std::FILE* err) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  NodeFile node_file;
  if (const auto chosen = node_file.choose(); !chosen.ok()) {
    return failed(chosen.error(), name, kProblem, err);
  }
  const auto read_again = [program, arguments, &node_file] {
    return options::read_options(
        program, arguments, [&](std::string_view name_of) { return node_file.variable(name_of); },
        read_file);
  };
  auto read = read_again();
  if (!read.ok()) return failed(read.error(), name, kUsage, err);
  if (read->help || read->version) {
    fmt::print(out, "{}", read->help ? options::help_text(program) : "gantry " GANTRY_VERSION "\n");
    return kOk;
  }
  const Log log(
      read->options.log.format == options::LogFormat::Json ? LogForm::Json : LogForm::Klog,
      read->options.log.verbosity);
  say_notes(*read, log);
  auto host = sys::Host::at(read->options.root);
  if (!host.ok()) return failed(host.error(), name, kProblem, err);
  const agent::Agent::Reload reload = [read_again]() -> Result<options::Options> {
    GANTRY_TRY(auto again, read_again());
    return std::move(again.options);
  };
  if (program == options::Program::FeatureDiscovery) {
    const auto ended = agent::discover({*std::move(host), read->options, log, out, reload});
    return ended.ok() ? kOk : failed(ended.error(), name, kProblem, err);
  }
  if (program == options::Program::MpsDaemon) {
    const auto ended = agent::run_mps_daemons({*std::move(host), read->options, log, reload});
    return ended.ok() ? kOk : failed(ended.error(), name, kProblem, err);
  }
  auto made = agent::Agent::make(*std::move(host), read->options, log, reload, spec_options_once());
  if (!made.ok()) return failed(made.error(), name, kProblem, err);
  node_file.watch(log);
  const auto ended = (*made)->run();
  return ended.ok() ? kOk : failed(ended.error(), name, kProblem, err);
}

}  // namespace

int agent(int argc, char** argv, std::FILE* out, std::FILE* err) {
  return run_agent_program(options::Program::Agent, "gantry agent", argc, argv, out, err);
}
int device_plugin(int argc, char** argv, std::FILE* out, std::FILE* err) {
  return run_agent_program(options::Program::Plugin, "nvidia-device-plugin", argc, argv, out, err);
}
int gke_device_plugin(int argc, char** argv, std::FILE* out, std::FILE* err) {
  return run_agent_program(options::Program::Gke, "nvidia-gpu-device-plugin", argc, argv, out, err);
}

int gpushare_device_plugin(int argc, char** argv, std::FILE* out, std::FILE* err) {
  return run_agent_program(options::Program::Gpushare, "gpushare-device-plugin", argc, argv, out,
                           err);
}

int feature_discovery(int argc, char** argv, std::FILE* out, std::FILE* err) {
  return run_agent_program(options::Program::FeatureDiscovery, "gpu-feature-discovery", argc, argv,
                           out, err);
}

// NVIDIA's manifest runs `mount-shm` before it starts the daemon.
int mps_control_daemon(int argc, char** argv, std::FILE* out, std::FILE* err) {
  constexpr std::string_view kName = "mps-control-daemon";
  if (argc < 2 || std::string_view(argv[1]) != "mount-shm")
    return run_agent_program(options::Program::MpsDaemon, kName, argc, argv, out, err);
  auto host = sys::Host::at("/");
  if (!host.ok()) return failed(host.error(), kName, kProblem, err);
  const auto mounted = agent::mount_shm(*host, std::string(agent::kMpsMountPath));
  return mounted.ok() ? kOk : failed(mounted.error(), kName, kProblem, err);
}

void add_agent(CLI::App& app, Context& /*context*/, Action& /*chosen*/) {
  app.add_subcommand("agent",
                     "Offer this node's GPUs to its kubelet, watch their health, show metrics")
      ->footer("Options: gantry agent --help");
}

}  // namespace gantry::cli
