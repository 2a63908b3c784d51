// SPDX-License-Identifier: Apache-2.0
#include "gpu/procfs/version.hpp"
#include "install/driver_setup/apply_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>

namespace gantry::driver_setup {
namespace {

using Steps = std::vector<InstallStep>;

std::size_t index_of(const Steps& steps, bool (*matches)(StepKind)) {
  const auto found = std::find_if(steps.begin(), steps.end(),
                                  [&](const InstallStep& step) { return matches(step.kind); });
  return static_cast<std::size_t>(found - steps.begin());
}

bool is_record(StepKind kind) {
  return kind == StepKind::Record;
}

std::string_view what_fills_disk(const Error& error) {
  switch (error.sys_errno()) {
    case ENOSPC:
    case EDQUOT:
      return "the disk is full: free space below /var/lib/gantry and in the directory of the "
             "driver, "
             "then run the same command again";
    case EROFS:
      return "the file system is read-only: use another directory with --directory DIR, for "
             "example /var/lib/nvidia or /home/kubernetes/bin/nvidia";
    default: return "";
  }
}

Error explained(const Error& error, const std::string& doing) {
  const auto remedy = what_fills_disk(error);
  auto text = Error(error).in(doing);
  return remedy.empty() || !error.remedy().empty() ? text : std::move(text).advise(remedy);
}

// Each step once; the first error. journal.step is the one that failed.
Status run_steps(SetupWork& work, std::size_t begin, std::size_t end,
                 std::vector<std::string>& done) {
  for (std::size_t k = begin; k < end; ++k) {
    const auto step = work.journal.steps[k];
    const auto text = describe(step, work.target());
    work.journal.step = k;
    if (auto saved = save_journal(work); !saved.ok()) return explained(saved.error(), text);
    work.enter(step.kind < StepKind::Verify ? SetupPhase::Install : SetupPhase::Verify);
    work.progress(text);
    if (auto status = execute(work, step); !status.ok()) return explained(status.error(), text);
    done.push_back(describe(step, work.target()));
  }
  return {};
}

// After the record: the driver is installed whatever happens here.
void run_last_steps(SetupWork& work, std::size_t begin, std::vector<std::string>& done) {
  for (std::size_t k = begin; k < work.journal.steps.size(); ++k) {
    const auto step = work.journal.steps[k];
    const auto text = describe(step, work.target());
    work.progress(text);
    const auto status = execute(work, step);
    if (status.ok())
      done.push_back(text);
    else
      work.note(fmt::format("{}: {}", text, status.error().text()));
  }
}

std::vector<std::string> undo_steps(SetupWork& work) {
  std::vector<std::string> failures;
  const auto& steps = work.journal.steps;
  for (std::size_t k = std::min(work.journal.step + 1, steps.size()); k-- > 0;) {
    const auto undone = undo(work, steps[k]);
    if (!undone.ok()) failures.push_back(undone.error().text());
  }
  return failures;
}

std::string state_after(const SetupWork& work) {
  const auto* before = work.before();
  const auto loaded = procfs::read_version(work.host);
  if (before == nullptr && work.journal.unloaded && loaded.ok())
    return fmt::format("the driver {} that was loaded before is loaded again", loaded->version);
  if (before == nullptr && work.journal.unloaded)
    return "the driver that was loaded before, which Gantry did not install, is unloaded: what "
           "installed it, or a reboot, loads it again";
  if (before == nullptr) return "all is as it was before";
  if (!work.journal.unloaded) return fmt::format("the driver {} stays", describe(*before));
  return fmt::format("the driver {} is loaded again", describe(*before));
}

// Any code but Internal tells the caller that the machine is as it was.
Error after_way_back(const SetupWork& work, const Error& error, const Status& back) {
  if (!back.ok()) {
    return Error(Errc::Internal, fmt::format("{}; taking it back failed too: {}", error.cause(),
                                             back.error().cause()))
        .advise(back.error().remedy());
  }
  const auto code = error.code() == Errc::Internal ? Errc::Denied : error.code();
  return Error(code, fmt::format("{}; {}", error.cause(), state_after(work)))
      .advise(error.remedy());
}

Error turn_back(SetupWork& work, const Error& error) {
  work.progress(fmt::format("failed: {}", error.cause()));
  const auto back = go_back(work);
  return after_way_back(work, error, back);
}

Status run_and_turn_back(SetupWork& work, std::size_t begin, std::size_t end,
                         std::vector<std::string>& done) {
  auto status = run_steps(work, begin, end, done);
  return status.ok() ? Status() : turn_back(work, status.error());
}

}  // namespace

Status go_back(SetupWork& work) {
  work.journal.backwards = true;
  // A full disk must not stop the way back: the journal that is there leads here too.
  static_cast<void>(save_journal(work).ok());
  auto failures = undo_steps(work);
  if (failures.empty()) {
    auto removed = remove_created(work, newly_created(work.journal));
    if (removed.ok()) removed = move_back(work, newly_moved(work.journal));
    if (removed.ok()) removed = work.effects.remove_tree(std::string(kStaging));
    if (removed.ok() && work.keeps_journal)
      removed = work.effects.remove(std::string(kJournalPath));
    if (!removed.ok()) failures.push_back(removed.error().text());
  }
  if (failures.empty()) return {};
  return Error(Errc::Internal, fmt::format("{}", fmt::join(failures, "; ")))
      .advise("when the cause is gone, run the same command again, or: sudo gantry driver remove");
}

void finish_recorded(SetupWork& work, std::vector<std::string>& done) {
  run_last_steps(work, index_of(work.journal.steps, is_record) + 1, done);
  const auto closed = work.effects.remove(std::string(kJournalPath));
  if (!closed.ok())
    work.note(fmt::format("the journal stays; the same command again removes it: {}",
                          closed.error().text()));
}

Status go_forward(SetupWork& work, std::vector<std::string>& done) {
  const auto& steps = work.journal.steps;
  const auto record = index_of(steps, is_record);
  const auto idle = std::min(index_of(steps, needs_idle_gpus), record);
  GANTRY_CHECK(run_and_turn_back(work, 0, idle, done));
  bool begun = false;
  const auto act = [&] {
    begun = true;
    return run_and_turn_back(work, idle, std::min(record + 1, steps.size()), done);
  };
  auto status = work.options.exclusively ? work.options.exclusively(act) : act();
  if (!status.ok() && !begun) return turn_back(work, status.error());
  if (!status.ok()) return status;
  finish_recorded(work, done);
  return {};
}

}  // namespace gantry::driver_setup
