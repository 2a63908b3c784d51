// SPDX-License-Identifier: Apache-2.0
#include "base/sys/shell_command.hpp"
#include "container/driver_dir/garbage.hpp"
#include "container/engines/journal.hpp"
#include "node/setup/node_setup_internal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

namespace gantry::setup {
namespace {

struct DirectoryEntry {
  sys::UniqueFd directory;
  std::string name;
};

// Resolves links inside the root: /var/run is one.
Result<DirectoryEntry> open_parent(const sys::Host& host, const std::string& path) {
  const auto slash = path.rfind('/');
  GANTRY_TRY(auto directory, host.open(path.substr(0, slash + 1), O_RDONLY | O_DIRECTORY));
  return DirectoryEntry{std::move(directory), path.substr(slash + 1)};
}

Result<std::string> remove_file(const sys::Host& host, const std::string& path) {
  const auto place = open_parent(host, path);
  if (!place.ok()) {
    if (place.error().code() == Errc::NotFound) return std::string("already gone");
    return place.error();
  }
  if (::unlinkat(place->directory.get(), place->name.c_str(), 0) == 0) {
    return std::string("removed");
  }
  if (errno == ENOENT) return std::string("already gone");
  return Error::sys(errno, "removing " + path);
}

Result<std::string> move_back(const sys::Host& host, const std::string& path) {
  if (host.link_info(path).ok()) {
    return Error(
        Errc::Exists,
        fmt::format("another program has written it since; the old one is {}.before-gantry", path));
  }
  GANTRY_TRY(const auto place, open_parent(host, path));
  const auto aside = place.name + ".before-gantry";
  const int in = place.directory.get();
  if (::renameat(in, aside.c_str(), in, place.name.c_str()) == 0) return std::string("restored");
  if (errno == ENOENT) return std::string("already gone");
  return Error::sys(errno, fmt::format("restoring {}.before-gantry", path));
}

// Running containers have these directories mounted: the files are removed when no container uses
// them.
Result<std::string> remove_drivers(const sys::Host& host, const std::string& path) {
  if (!host.link_info(path).ok()) return std::string("already gone");
  GANTRY_TRY(const auto done, driver_dir::unpublish(host));
  if (!done.failed.empty()) return Error(Errc::Internal, done.failed.front());
  if (!done.in_use.empty()) {
    return Error(Errc::Busy, fmt::format("{} of them are mounted in containers; when those "
                                         "containers have ended, run: sudo gantry node down",
                                         done.in_use.size()));
  }
  const auto rest = host.list(path);
  // The lock of the writers.
  for (const auto& name : rest.ok() ? *rest : std::vector<std::string>{}) {
    GANTRY_CHECK(remove_file(host, fmt::format("{}/{}", path, name)));
  }
  GANTRY_TRY(const auto place, open_parent(host, path));
  if (::unlinkat(place.directory.get(), place.name.c_str(), AT_REMOVEDIR) == 0) {
    return std::string("removed");
  }
  return Error::sys(errno, "removing " + path);
}

// A unit that was edited belongs to the user.
Result<std::string> remove_unit(const SetupContext& work, const std::string& path) {
  const auto text = work.host.read(path);
  if (text.ok() && *text != agent_unit(work.options.program)) {
    return std::string("kept: it was changed in the meantime");
  }
  auto done = remove_file(work.host, path);
  if (done.ok() && work.options.run) GANTRY_CHECK(work.options.run({"systemctl", "daemon-reload"}));
  return done;
}

Result<std::string> disable(const SetupContext& work, const std::string& unit) {
  if (!work.options.run) {
    return Error(Errc::Unsupported,
                 sys::on_machine(work.host, "sudo systemctl disable --now " + unit));
  }
  GANTRY_CHECK(work.options.run({"systemctl", "disable", "--now", unit}));
  return std::string("stopped, disabled");
}

Result<std::string> restore_engine(const SetupContext& work, const std::string& name) {
  GANTRY_TRY(const auto engine, engines::parse_engine(name));
  const auto files = engines::disk_file_writer();
  const auto done = engines::undo(work.host, engine, *files);
  if (!done.ok() && done.error().code() == Errc::NotFound) return std::string("already restored");
  if (!done.ok()) return done.error();
  for (const auto& note : done->notes) work.report.notes.push_back(note);
  const auto plan = engines::make_plan(work.host, {.engine = engine, .run = work.options.run});
  if (!plan.ok() || plan->restart.empty()) return std::string("configured as before");
  const auto command = fmt::format("{}", fmt::join(plan->restart, " "));
  if (!work.options.restart || !work.options.run) {
    return "configured as before; to apply it: " + sys::on_machine(work.host, "sudo " + command);
  }
  GANTRY_CHECK(work.options.run(plan->restart));
  return std::string("configured as before; restarted");
}

Result<std::string> undo(const SetupContext& work, const JournalEntry& record) {
  switch (record.action) {
    case SetupAction::Driver: return remove_drivers(work.host, record.subject);
    case SetupAction::Inventory:
    case SetupAction::Spec: return remove_file(work.host, record.subject);
    case SetupAction::Moved: return move_back(work.host, record.subject);
    case SetupAction::Engine: return restore_engine(work, record.subject);
    case SetupAction::UnitFile: return remove_unit(work, record.subject);
    case SetupAction::UnitEnabled: break;
  }
  return disable(work, record.subject);
}

std::string_view step_of(SetupAction action) {
  switch (action) {
    case SetupAction::Driver: return "driver files";
    case SetupAction::Inventory: return "inventory";
    case SetupAction::Spec:
    case SetupAction::Moved: return "CDI";
    case SetupAction::Engine: return "engine";
    case SetupAction::UnitFile:
    case SetupAction::UnitEnabled: break;
  }
  return "agent";
}

Status take_back(const SetupContext& work, const JournalEntry& record) {
  const auto where =
      record.subject.starts_with("/") ? work.host.outside(record.subject) : record.subject;
  if (work.options.dry_run) {
    work.say(std::string(step_of(record.action)), where, "would be undone");
    return {};
  }
  auto done = undo(work, record);
  work.say(std::string(step_of(record.action)), where, done.ok() ? *done : done.error().text(),
           !done.ok());
  return done.ok() ? work.journal.drop(record) : Status{};
}

}  // namespace

// Undoes the last action first. Files that were moved aside come back at the end, when their place
// is free.
Result<NodeReport> node_down(const sys::Host& host, const NodeOptions& options) {
  GANTRY_TRY(auto journal, NodeJournal::open(host));
  if (journal.records().empty()) {
    return Error(Errc::NotFound, "`gantry node up` has changed nothing on this machine");
  }
  NodeReport report;
  const SetupContext work{host, options, journal, report};
  const auto records = journal.records();
  for (auto at = records.rbegin(); at != records.rend(); ++at) {
    if (at->action != SetupAction::Moved) GANTRY_CHECK(take_back(work, *at));
  }
  for (const auto& record : records) {
    if (record.action == SetupAction::Moved) GANTRY_CHECK(take_back(work, record));
  }
  return report;
}

}  // namespace gantry::setup
