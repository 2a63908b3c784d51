// SPDX-License-Identifier: Apache-2.0
#include "gantry/config_manager.hpp"

#include "base/sys/replace_file.hpp"
#include "command_line/parse_arguments.hpp"
#include "gantry/command.hpp"
#include "node/options/config_watcher.hpp"

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>

namespace gantry::cli {
namespace {

struct ManagerFlags {
  options::ConfigManagerSettings setting;
  std::string fallbacks;
  std::string kubeconfig;
  std::string destination;
  bool oneshot = false;
  bool send_signal = true;
  int signal = SIGHUP;
  std::string process = "nvidia-device-plugin";
};

constexpr std::string_view kEmpty = "version: v1\n";

// Uses rename, so that a reader always finds the old file or the new one.
Status put(const ManagerFlags& flags, const std::string& file) {
  if (file.empty()) return sys::replace_file(flags.destination, kEmpty);
  const auto beside = fmt::format("{}.{}", flags.destination, ::getpid());
  ::unlink(beside.c_str());
  if (::symlink(file.c_str(), beside.c_str()) != 0) return Error::sys(errno, "link " + beside);
  if (::rename(beside.c_str(), flags.destination.c_str()) != 0) {
    return Error::sys(errno, "rename to " + flags.destination);
  }
  return {};
}

bool is_called(const sys::Host& host, const std::string& pid, const std::string& name) {
  const auto command = host.read(fmt::format("/proc/{}/cmdline", pid));
  if (!command.ok()) return false;
  const auto first = command->substr(0, command->find('\0'));
  return first.substr(first.rfind('/') + 1) == name;
}

Result<int> send_signal(const ManagerFlags& flags) {
  GANTRY_TRY(const auto host, sys::Host::at("/"));
  GANTRY_TRY(const auto entries, host.list("/proc"));
  int sent = 0;
  for (const auto& pid : entries) {
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!is_called(host, pid, flags.process)) continue;
    if (::kill(static_cast<pid_t>(std::stol(pid)), flags.signal) == 0) ++sent;
  }
  return sent;
}

void on_change(const ManagerFlags& flags, const std::string& file, std::FILE* out) {
  const auto done = put(flags, file);
  fmt::print(out, "{}: {}\n", flags.destination,
             done.ok() ? (file.empty() ? "no configuration" : file) : done.error().text());
  if (flags.send_signal) {
    const auto sent = send_signal(flags);
    fmt::print(out, "signal {} to {} processes called {}\n", flags.signal, sent.ok() ? *sent : 0,
               flags.process);
  }
  std::fflush(out);
}

Result<int> manage(ManagerFlags& flags, std::FILE* out, std::FILE* err) {
  GANTRY_TRY(auto checked,
             options::read_settings([&](std::string_view name) -> std::optional<std::string> {
               if (name == "FALLBACK_STRATEGIES") return flags.fallbacks;
               if (name == "CONFIG_FILE_SRCDIR") return flags.setting.directory;
               return std::nullopt;
             }));
  flags.setting.fallbacks = checked->fallbacks;
  GANTRY_TRY(const auto access, kube::find_client_config(flags.kubeconfig, kube::Caller::Node));
  kube::Api api(access);
  GANTRY_TRY(const auto file, options::current_config_file(api, flags.setting));
  GANTRY_CHECK(put(flags, file));
  fmt::print(out, "{}: {}\n", flags.destination, file.empty() ? "no configuration" : file);
  std::fflush(out);
  if (flags.oneshot) return kOk;
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGTERM);
  ::sigaddset(&ends, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const options::ConfigWatcher watch(
      access, flags.setting, file,
      {.changed = [&](const std::string& now) { on_change(flags, now, out); },
       .failed = [&](const std::string& why) { fmt::print(err, "config-manager: {}\n", why); }});
  int which = 0;
  ::sigwait(&ends, &which);
  return kOk;
}

void add_manager_options(CLI::App& app, ManagerFlags& flags) {
  auto& setting = flags.setting;
  app.add_option("--node-name", setting.node, "The name of this node")
      ->envname("NODE_NAME")
      ->required();
  app.add_option("--node-label", setting.label, "The label that names a configuration")
      ->envname("NODE_LABEL")
      ->capture_default_str();
  app.add_option("--config-file-srcdir", setting.directory, "The directory of the configurations")
      ->envname("CONFIG_FILE_SRCDIR")
      ->required();
  app.add_option("--config-file-dst", flags.destination, "The link to create")
      ->envname("CONFIG_FILE_DST")
      ->required();
  app.add_option("--default-config", setting.default_name,
                 "The configuration for nodes without the label")
      ->envname("DEFAULT_CONFIG");
  app.add_option("--fallback-strategies", flags.fallbacks,
                 "What to use without a default: named, single, empty; tried in this order")
      ->envname("FALLBACK_STRATEGIES");
  app.add_option("--kubeconfig", flags.kubeconfig, "Kubeconfig file")->envname("KUBECONFIG");
  app.add_option("--oneshot", flags.oneshot, "Choose once and exit")
      ->envname("ONESHOT")
      ->expected(0, 1)
      ->default_str("true");
  app.add_option("--send-signal", flags.send_signal, "Send a signal to the plugin after a change")
      ->envname("SEND_SIGNAL")
      ->expected(0, 1);
  app.add_option("--signal", flags.signal, "The signal to send")->envname("SIGNAL");
  app.add_option("--process-to-signal", flags.process, "The name of the plugin's process")
      ->envname("PROCESS_TO_SIGNAL");
}

}  // namespace

int config_manager(int argc, char** argv, std::FILE* out, std::FILE* err) {
  CLI::App app("Gives this node the configuration that its label names.", "config-manager");
  app.set_version_flag("--version", "config-manager of gantry " GANTRY_VERSION);
  ManagerFlags flags;
  add_manager_options(app, flags);
  try {
    command_line::parse_arguments(app, argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print(out, "{}", app.help());
    return kOk;
  } catch (const CLI::CallForVersion& version) {
    fmt::print(out, "{}\n", version.what());
    return kOk;
  } catch (const CLI::ParseError& wrong) {
    fmt::print(err, "config-manager: {}\n", wrong.what());
    return kUsage;
  }
  const auto done = manage(flags, out, err);
  if (done.ok()) return *done;
  fmt::print(err, "config-manager: {}\n", done.error().text());
  return kProblem;
}

}  // namespace gantry::cli
