// SPDX-License-Identifier: Apache-2.0
#include "base/sys/replace_file.hpp"
#include "base/sys/shell_command.hpp"
#include "node/setup/node_setup_internal.hpp"

#include <fmt/format.h>

namespace gantry::setup {
namespace {

constexpr std::string_view kPackaged = "/usr/bin/gantry";

bool has_unit(const sys::Host& host) {
  for (const auto* directory : {"/etc/systemd/system", "/usr/lib/systemd/system",
                                "/lib/systemd/system", "/usr/local/lib/systemd/system"}) {
    if (host.exists(fmt::format("{}/{}", directory, kAgentUnitName))) return true;
  }
  return false;
}

Status write_unit(const SetupContext& work) {
  GANTRY_CHECK(work.journal.add({SetupAction::UnitFile, std::string(kAgentUnitPath)}));
  return sys::replace_file(work.host.outside(kAgentUnitPath), agent_unit(work.options.program));
}

// A unit that was already enabled must not be disabled by us later.
Result<std::string> start_unit(const SetupContext& work) {
  const std::string name(kAgentUnitName);
  if (!work.options.run) {
    return "to start it: " + sys::on_machine(work.host, "sudo systemctl enable --now " + name);
  }
  GANTRY_CHECK(work.options.run({"systemctl", "daemon-reload"}));
  if (work.options.run({"systemctl", "is-enabled", name}).ok()) {
    GANTRY_CHECK(work.options.run({"systemctl", "start", name}));
    return std::string("already enabled, running");
  }
  GANTRY_CHECK(work.journal.add({SetupAction::UnitEnabled, name}));
  GANTRY_CHECK(work.options.run({"systemctl", "enable", "--now", name}));
  return std::string("enabled, running");
}

Result<std::string> add_systemd(const SetupContext& work) {
  if (work.options.dry_run) return std::string("would be enabled and started");
  if (!has_unit(work.host)) GANTRY_CHECK(write_unit(work));
  return start_unit(work);
}

}  // namespace

std::string agent_unit(const std::string& program) {
  std::string text(agent_unit_template());
  const auto at = text.find(kPackaged);
  if (at != std::string::npos) text.replace(at, kPackaged.size(), program);
  return text;
}

bool has_kubelet(const sys::Host& host) {
  return host.exists("/var/lib/kubelet/device-plugins");
}

bool has_systemd(const sys::Host& host) {
  return host.exists("/run/systemd/system");
}

void agent_step(const SetupContext& work) {
  if (!work.options.agent) return;
  if (!has_systemd(work.host)) {
    work.say("agent", "",
             fmt::format("systemd is not running; to start it: sudo {} agent{}",
                         sys::shell_word(work.options.program), sys::root_flag(work.host)));
  } else {
    auto done = add_systemd(work);
    work.say("agent", std::string(kAgentUnitName), done.ok() ? *done : done.error().text(),
             !done.ok());
  }
  if (!has_kubelet(work.host)) {
    work.report.notes.emplace_back(
        "there is no kubelet on this machine: the agent monitors the GPUs and serves metrics, and "
        "offers the GPUs when a kubelet starts");
  }
}

}  // namespace gantry::setup
