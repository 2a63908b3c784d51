// SPDX-License-Identifier: Apache-2.0
#include "container/publish/refresh.hpp"
#include "gpu/probe/snapshot.hpp"
#include "node/setup/node_setup_internal.hpp"

#include <fmt/format.h>

namespace gantry::setup {
namespace {

constexpr std::string_view kDrivers = "/var/lib/gantry/driver";

struct SetupFile {
  SetupAction action;
  std::string_view path;
};
constexpr SetupFile kSetupFiles[] = {{SetupAction::Driver, kDrivers},
                                     {SetupAction::Inventory, probe::kInventoryPath},
                                     {SetupAction::Spec, publish::kSpecPath}};

// Files that already exist are not recorded, so `down` keeps them, even if an earlier run wrote
// them.
Status record_new_files(const SetupContext& work) {
  for (const auto& [action, path] : kSetupFiles) {
    if (work.host.link_info(path).ok()) continue;
    GANTRY_CHECK(work.journal.add({action, std::string(path)}));
  }
  return {};
}

// Actions that a failed run recorded but did not do: `down` would have nothing to undo.
Status forget_missing_files(const SetupContext& work) {
  for (const auto& [action, path] : kSetupFiles) {
    if (work.host.link_info(path).ok()) continue;
    GANTRY_CHECK(work.journal.drop({action, std::string(path)}));
  }
  return {};
}

void say(const SetupContext& work, const publish::RefreshResult& done) {
  const bool made = done.driver.outcome == driver_dir::PublishOutcome::Created;
  work.say("driver files", work.host.outside(done.driver.directory),
           made ? fmt::format("prepared ({})", done.driver.way) : "unchanged");
  work.say(
      "CDI", work.host.outside(publish::kSpecPath),
      fmt::format("{} devices, {}", done.devices, done.spec_changed ? "written" : "unchanged"));
  for (const auto& name : done.moved) {
    work.say("CDI", name, fmt::format("moved to {}.before-gantry", name));
  }
}

}  // namespace

Status refresh_step(const SetupContext& work) {
  const publish::RefreshOptions options{.take_over = work.options.take_over,
                                        .deadline = work.options.deadline};
  GANTRY_TRY(const auto machine,
             probe::snapshot(work.host, {.deadline = options.deadline, .nvml = options.nvml}));
  GANTRY_CHECK(publish::check_refresh(work.host, machine, options));
  if (work.options.dry_run) {
    work.say("driver files", work.host.outside(kDrivers), "would be prepared");
    work.say("CDI", work.host.outside(publish::kSpecPath), "would be written");
    return {};
  }
  GANTRY_CHECK(record_new_files(work));
  const auto done = publish::refresh_with_inventory(work.host, machine, options);
  if (!done.ok()) {
    GANTRY_CHECK(forget_missing_files(work));
    return done.error();
  }
  for (const auto& name : done->moved) {
    GANTRY_CHECK(work.journal.add({SetupAction::Moved, name}));
    if (name == publish::kSpecPath) GANTRY_CHECK(work.journal.add({SetupAction::Spec, name}));
  }
  say(work, *done);
  for (const auto& note : done->notes) work.report.notes.push_back(note);
  return {};
}

}  // namespace gantry::setup
