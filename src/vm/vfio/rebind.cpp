// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/rebind.hpp"

#include "vm/vfio/rebind_steps_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gantry::vfio {
namespace {

bool is_stuck(const Journal& journal, const Step& step, const FunctionMove* move) {
  const auto has = [&](const model::PciAddress& address) {
    return std::find(journal.stuck.begin(), journal.stuck.end(), address) != journal.stuck.end();
  };
  if (step.kind == StepKind::PersistenceOff) return has(journal.persistence[step.index]);
  return move != nullptr && has(move->address);
}

Error stuck_in_kernel(const Journal& journal, const Step& step, const FunctionMove& move,
                      const Error& error) {
  return Error(Errc::Timeout,
               fmt::format("{} is stuck in the kernel: the attempt to {} has not finished ({}); "
                           "Gantry leaves this GPU "
                           "alone until its users end or the machine reboots",
                           move.address.sysfs(), describe(journal, step), error.cause()))
      .advise("when its users have ended: gantry vfio recover; otherwise: sudo reboot");
}

Status save(const Journal& journal, const Effects& effects) {
  return effects.save(journal_path(journal), to_json(journal)).in("writing the journal");
}

// How the way back went. A GPU has arrived if none of its steps failed or was left out.
struct RollbackResult {
  std::vector<std::string> failures;  // one sentence each
  std::vector<model::PciAddress> left;

  bool complete() const { return failures.empty() && left.empty(); }
  void keep(const model::PciAddress& target) {
    if (std::find(left.begin(), left.end(), target) == left.end()) left.push_back(target);
  }
};

// Functions that a write is stuck in are left alone: every further write to them would wait for the
// first.
RollbackResult undo_all(StepRunner& runner, Journal& journal, const Effects& effects) {
  RollbackResult back;
  const auto steps = steps_of(journal);
  for (std::size_t k = std::min(journal.step + 1, steps.size()); k-- > 0;) {
    const auto* move = runner.move_of(steps[k]);
    if (is_stuck(journal, steps[k], move)) {
      if (move != nullptr) back.keep(move->target);
      continue;
    }
    const auto undone = runner.undo(steps[k]);
    if (undone.ok()) continue;
    if (undone.error().code() == Errc::Timeout && move != nullptr) {
      journal.stuck.push_back(move->address);
      back.keep(move->target);
      back.failures.push_back(stuck_in_kernel(journal, steps[k], *move, undone.error()).text());
      static_cast<void>(save(journal, effects).ok());  // the failure itself is reported
      continue;
    }
    // A function that has gone cannot be given back, and nothing of it is left to repeat. ENODEV
    // alone does not mean that: a driver may have refused a card that is still there.
    if (move != nullptr && runner.has_gone(*move)) {
      runner.notes.push_back(undone.error().text());
      continue;
    }
    back.failures.push_back(undone.error().text());
    for (const auto& target : move != nullptr ? std::vector{move->target} : journal.targets)
      back.keep(target);
  }
  return back;
}

// The work that is left for some of the GPUs. Its steps have other numbers, so all of them are
// undone again, which changes nothing where they are undone already.
Journal narrowed(const Journal& journal, const std::vector<model::PciAddress>& left) {
  const auto is_left = [&](const model::PciAddress& gpu) {
    return std::find(left.begin(), left.end(), gpu) != left.end();
  };
  auto narrow = journal;
  narrow.services.clear();  // they run again
  std::erase_if(narrow.targets, [&](const auto& gpu) { return !is_left(gpu); });
  std::erase_if(narrow.persistence, [&](const auto& gpu) { return !is_left(gpu); });
  std::erase_if(narrow.moves, [&](const auto& move) { return !is_left(move.target); });
  narrow.step = steps_of(narrow).size() - 1;
  return narrow;
}

// The journal stays only for the GPUs that `recover` has something left to do for, so that the
// others can be used meanwhile. Returns those others.
std::vector<model::PciAddress> close_journal(Journal& journal, const Effects& effects,
                                             RollbackResult& back) {
  std::vector<model::PciAddress> arrived;
  const auto old_path = journal_path(journal);
  if (!back.complete()) {
    const auto narrow = narrowed(journal, back.left);
    if (narrow.targets.empty() || narrow.targets == journal.targets) return {};
    if (!save(narrow, effects).ok()) return {};  // a full disk: the old journal says more, not less
    std::copy_if(
        journal.targets.begin(), journal.targets.end(), std::back_inserter(arrived),
        [&](const auto& gpu) { return std::count(back.left.begin(), back.left.end(), gpu) == 0; });
    journal = narrow;
    if (journal_path(journal) == old_path) return arrived;
  }
  const auto removed = effects.remove(old_path);
  if (!removed.ok()) back.failures.push_back(removed.error().text());
  return arrived;
}

std::string sentence_of(const std::vector<model::PciAddress>& arrived) {
  if (arrived.empty()) return "";
  std::vector<std::string> names;
  for (const auto& gpu : arrived) names.push_back(gpu.sysfs());
  return fmt::format("{} {} as before", fmt::join(names, ", "), names.size() == 1 ? "is" : "are");
}

// The code tells the caller how it ended: Internal or Timeout if something is left in between, any
// other one if the functions are as they were.
Error with_failures(const Error& first, const std::vector<std::string>& failures, bool in_between,
                    const std::vector<model::PciAddress>& arrived) {
  auto text = first.cause();
  if (!arrived.empty()) text += "; " + sentence_of(arrived);
  if (!failures.empty()) {
    text += fmt::format("; taking it back failed too: {}", fmt::join(failures, "; "));
  }
  auto code = first.code();
  if (in_between && code != Errc::Timeout) code = Errc::Internal;
  if (!in_between && (code == Errc::Internal || code == Errc::Timeout)) code = Errc::Denied;
  Error error(code, std::move(text));
  if (in_between && code == Errc::Internal) return std::move(error).advise("gantry vfio recover");
  return std::move(error).advise(first.remedy());
}

// Turns round after `error` in the step journal.step.
Error turn_back(StepRunner& runner, Journal& journal, const Effects& effects, const Error& error) {
  journal.backwards = true;
  static_cast<void>(save(journal, effects).ok());  // a full disk must not stop the way back
  auto back = undo_all(runner, journal, effects);
  const auto arrived = close_journal(journal, effects, back);
  const bool in_between = !back.complete();
  for (auto& note : runner.notes) back.failures.push_back(std::move(note));
  return with_failures(error, back.failures, in_between, arrived);
}

}  // namespace

Result<RebindResult> go_forward(const sys::Host& host, Journal& journal, const Effects& effects) {
  StepRunner runner(host, journal, effects);
  const auto steps = steps_of(journal);
  for (std::size_t k = journal.step; k < steps.size(); ++k) {
    journal.step = k;
    if (auto saved = save(journal, effects); !saved.ok()) {
      if (k == 0)
        return with_failures(Error(saved.error()).in("nothing was changed"), {}, false, {});
      journal.step = k - 1;  // this step was not begun
      return turn_back(runner, journal, effects, saved.error());
    }
    auto done = runner.execute(steps[k]);
    if (done.ok()) continue;
    const auto* move = runner.move_of(steps[k]);
    if (done.error().code() == Errc::Timeout && move != nullptr) {
      journal.stuck.push_back(move->address);
      const auto error = stuck_in_kernel(journal, steps[k], *move, done.error());
      return turn_back(runner, journal, effects, error);
    }
    return turn_back(runner, journal, effects, Error(done.error()).in(describe(journal, steps[k])));
  }
  return RebindResult{.notes = std::move(runner.notes)};
}

Result<RebindResult> go_back(const sys::Host& host, Journal& journal, const Effects& effects) {
  StepRunner runner(host, journal, effects);
  journal.backwards = true;
  // A full disk must not stop the way back: after a crash, the old journal leads here again.
  static_cast<void>(save(journal, effects).ok());
  const auto first = journal.targets.front();
  auto back = undo_all(runner, journal, effects);
  const auto arrived = close_journal(journal, effects, back);
  if (back.complete()) return RebindResult{.notes = std::move(runner.notes)};
  const Error failed(Errc::Internal,
                     fmt::format("taking back the {} of {} failed: {}", journal.kind, first.sysfs(),
                                 fmt::join(back.failures, "; ")));
  return with_failures(failed, {}, true, arrived);
}

bool is_past_unbind(const Journal& journal) {
  const auto steps = steps_of(journal);
  const auto bind = std::find_if(steps.begin(), steps.end(),
                                 [](const Step& step) { return step.kind == StepKind::Bind; });
  return bind != steps.end() && static_cast<std::ptrdiff_t>(journal.step) >= bind - steps.begin();
}

}  // namespace gantry::vfio
