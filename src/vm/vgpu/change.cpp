// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/change.hpp"

#include "vm/vgpu/read_host.hpp"
#include "vm/vgpu/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace gantry::vgpu {
namespace {

// The state of the host when the change began, and the state that the command wants.
struct HostState {
  std::vector<VgpuGpu> gpus;
  Intent intent;
  std::optional<Journal> interrupted;
};
using Planner = std::function<Result<Plan>(const HostState&)>;

Result<HostState> look(const sys::Host& host) {
  HostState now;
  now.gpus = read_host(host, read_known_types(host));
  GANTRY_TRY(now.intent, read_intent(host));
  GANTRY_TRY(now.interrupted, read_journal(host));
  return now;
}

std::vector<VgpuSpec> existing(const std::vector<VgpuGpu>& gpus,
                               const std::vector<model::PciAddress>& addresses) {
  std::vector<VgpuSpec> specs;
  for (const auto& address : addresses) {
    const auto* gpu = find_gpu(gpus, address);
    if (gpu == nullptr) continue;
    for (const auto& vgpu : gpu->vgpus) specs.push_back(spec_of(vgpu));
  }
  return specs;
}

Step undo_of(const Step& step) {
  return {.kind = step.kind == Step::Kind::Create ? Step::Kind::Remove : Step::Kind::Create,
          .vgpu = step.vgpu};
}

Status undo_step(const sys::Host& host, const Step& step, const Step& back, const Actions& actions,
                 const ChangeOptions& options) {
  if (step.kind == Step::Kind::Create) {
    // Another type on our virtual function is the vGPU of another program.
    GANTRY_TRY(const bool ours, vgpu_exists(host, step.vgpu));
    if (!ours) return {};
  }
  return run_step(host, back, actions, options);
}

// Undoes steps, the last first. Virtual functions and the mode for mixed sizes stay: neither
// takes anything away.
std::vector<std::string> undo(const sys::Host& host, const std::vector<Step>& done,
                              const Actions& actions, const ChangeOptions& options) {
  std::vector<std::string> failed;
  for (auto at = done.rbegin(); at != done.rend(); ++at) {
    const auto& step = *at;
    if (step.kind != Step::Kind::Create && step.kind != Step::Kind::Remove) continue;
    const auto back = undo_of(step);
    const auto undone = undo_step(host, step, back, actions, options);
    if (!undone.ok())
      failed.push_back(fmt::format("{}: {}", describe(back), undone.error().text()));
  }
  return failed;
}

// A vGPU that another program created in the meantime is not ours to remove.
bool is_of_others(const Step& failed, const Error& cause) {
  return failed.kind == Step::Kind::Create &&
         (cause.sys_errno() == EEXIST || cause.sys_errno() == EBUSY);
}

Error with_code(Errc code, const Error& error) {
  return Error(code, error.cause()).advise(error.remedy());
}

// A write that did not return may still act later, so Timeout stays.
Error undone(const Error& error) {
  return error.code() == Errc::Internal ? with_code(Errc::Denied, error) : error;
}

Error left_in_between(const Error& error) {
  return error.code() == Errc::Timeout ? error : with_code(Errc::Internal, error);
}

bool contains_gpu(const std::vector<model::PciAddress>& gpus, const model::PciAddress& gpu) {
  return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// The GPUs of an interrupted change that must be mended. A GPU that should have had vGPUs and has
// no stored one was not touched, or all was put back: the intent is stored before the first step.
// The vGPUs that it has are not ours, so they stay.
std::vector<model::PciAddress> half_done_gpus(const HostState& now) {
  std::vector<model::PciAddress> found;
  if (!now.interrupted) return found;
  const auto stored = now.intent.gpus();
  for (const auto& gpu : now.interrupted->gpus) {
    const auto& after = now.interrupted->after;
    const bool wanted_some = std::any_of(after.begin(), after.end(),
                                         [&](const VgpuSpec& spec) { return spec.gpu == gpu; });
    if (contains_gpu(stored, gpu) || !wanted_some) found.push_back(gpu);
  }
  return found;
}

// The repair that an interrupted change needs after this plan; nullopt if none.
std::optional<Journal> left_of_journal(const HostState& now, const Plan& plan) {
  auto gpus = half_done_gpus(now);
  std::erase_if(gpus, [&](const auto& gpu) { return contains_gpu(plan.gpus, gpu); });
  if (gpus.empty()) return std::nullopt;
  auto left = *now.interrupted;
  const auto is_other = [&](const VgpuSpec& spec) { return !contains_gpu(gpus, spec.gpu); };
  std::erase_if(left.before, is_other);
  std::erase_if(left.after, is_other);
  left.gpus = std::move(gpus);
  return left;
}

class Change {
 public:
  Change(const sys::Host& host, std::string command, const Actions& actions,
         const ChangeOptions& options)
      : host_(host), command_(std::move(command)), actions_(actions), options_(options) {}

  Result<ChangeReport> run(const Planner& planner) {
    if (options_.dry_run) return preview(planner);
    GANTRY_TRY(const auto lock, ChangeLock::take(host_));
    GANTRY_TRY(auto now, look(host_));
    GANTRY_TRY(auto plan, planner(now));
    if (plan.again) {
      GANTRY_CHECK(enable_functions(plan));
      GANTRY_TRY(now, look(host_));
      GANTRY_TRY(plan, planner(now));
      if (plan.again)
        return Error(Errc::Internal, "virtual functions were enabled and are gone again");
    }
    GANTRY_CHECK(remember(now.gpus));
    GANTRY_CHECK(execute(now, plan));
    report_.vgpus = plan.result;
    return std::move(report_);
  }

 private:
  Result<ChangeReport> preview(const Planner& planner) {
    GANTRY_TRY(const auto now, look(host_));
    GANTRY_TRY(auto plan, planner(now));
    if (plan.again) {
      report_.notes.push_back(
          "the types are known only when the virtual functions are enabled; they are checked then, "
          "before anything is removed");
    }
    report_.steps = std::move(plan.steps);
    report_.vgpus = std::move(plan.result);
    return std::move(report_);
  }

  // It takes nothing away, so it needs no journal.
  Status enable_functions(const Plan& plan) {
    for (const auto& step : plan.steps) {
      GANTRY_CHECK(run_step(host_, step, actions_, options_).in(describe(step)));
      report_.steps.push_back(step);
    }
    return {};
  }

  Status remember(const std::vector<VgpuGpu>& gpus) {
    auto types = read_known_types(host_);
    if (!remember_types(gpus, types)) return {};
    return actions_.save(kTypesPath, to_json(types)).in("storing the names of vGPU types");
  }

  Status execute(const HostState& now, const Plan& plan) {
    const auto next = now.intent.with(plan.gpus, plan.result);
    if (plan.steps.empty()) {
      if (next != now.intent) GANTRY_CHECK(store(next));
      return close_journal(now, plan);
    }
    auto journal = left_of_journal(now, plan).value_or(Journal{});
    journal.command = command_;
    append(journal.gpus, plan.gpus);
    append(journal.before, existing(now.gpus, plan.gpus));
    append(journal.after, plan.result);
    for (const auto& step : plan.steps) journal.steps.push_back(describe(step));
    GANTRY_CHECK(actions_.save(kJournalPath, to_json(journal)).in("storing the plan"));
    if (const auto stored = store(next); !stored.ok()) {
      if (!now.interrupted) (void)actions_.erase(kJournalPath);  // the first error is told
      return Error(stored.error());
    }
    for (const auto& step : plan.steps) {
      const auto status = run_step(host_, step, actions_, options_).in(describe(step));
      if (!status.ok()) return give_up(now, plan, status.error());
      report_.steps.push_back(step);
    }
    return close_journal(now, plan);
  }

  // The GPUs that another plan has to mend stay in it.
  Status close_journal(const HostState& now, const Plan& plan) {
    if (const auto left = left_of_journal(now, plan))
      return actions_.save(kJournalPath, to_json(*left)).in("closing the journal");
    const bool written = now.interrupted || !plan.steps.empty();
    return written ? actions_.erase(kJournalPath).in("closing the journal") : Status{};
  }

  Status store(const Intent& intent) {
    return actions_.save(kIntentPath, to_json(intent)).in("storing which vGPUs should exist");
  }

  // Back to what was before. A change that had already been interrupted has no good state to go
  // back to: its journal stays, and the next apply or restore mends it. The code tells the caller
  // how it ended: Internal or Timeout if something is left in between.
  Error give_up(const HostState& now, const Plan& plan, const Error& cause) {
    std::vector<Step> done;
    for (const auto& step : report_.steps) {
      const bool ours = std::find(plan.steps.begin(), plan.steps.end(), step) != plan.steps.end();
      if (ours) done.push_back(step);
    }
    // The step that failed may be half done: undoing it does nothing if it is not.
    const auto& last = plan.steps[done.size()];
    if (!is_of_others(last, cause)) done.push_back(last);
    const auto failed = undo(host_, done, actions_, options_);
    if (failed.empty() && !now.interrupted) {
      auto stored = store(now.intent);
      if (stored.ok()) stored = actions_.erase(kJournalPath);
      if (stored.ok()) return undone(cause).in("all is as it was before");
    }
    return left_in_between(cause)
        .in(failed.empty()
                ? "the change is not complete"
                : fmt::format("the change could not be undone ({})", fmt::join(failed, "; ")))
        .advise("when the cause is gone: `sudo gantry vgpu apply --restore`");
  }

  const sys::Host& host_;
  std::string command_;
  const Actions& actions_;
  const ChangeOptions& options_;
  ChangeReport report_;
};

// Another command must not build on a change that is half done.
Status refuse_interrupted(const HostState& now) {
  if (!now.interrupted) return {};
  return Error(Errc::Busy,
               fmt::format("`gantry vgpu {}` was interrupted: its {} step{} may be half "
                           "done",
                           now.interrupted->command, now.interrupted->steps.size(),
                           now.interrupted->steps.size() == 1 ? "" : "s"))
      .advise("complete it with `sudo gantry vgpu apply --restore`");
}

Result<Plan> plan_apply(const HostState& now, const std::vector<DesiredVgpus>& wanted,
                        const NewUuid& new_uuid) {
  GANTRY_TRY(auto plan, plan_counts(now.gpus, wanted, new_uuid));
  if (!now.interrupted) return plan;
  std::vector<model::PciAddress> others;
  for (const auto& gpu : half_done_gpus(now)) {
    if (!contains_gpu(plan.gpus, gpu)) others.push_back(gpu);
  }
  GANTRY_TRY(auto rest, plan_exact(now.gpus, others, now.intent.vgpus));
  return join(std::move(plan), std::move(rest));
}

std::vector<model::PciAddress> gpus_to_restore(const HostState& now) {
  auto gpus = now.intent.gpus();
  for (const auto& gpu : half_done_gpus(now)) {
    if (!contains_gpu(gpus, gpu)) gpus.push_back(gpu);
  }
  return gpus;
}

void add_report(ChangeReport one, ChangeReport& all) {
  append(all.steps, one.steps);
  append(all.vgpus, one.vgpus);
  for (auto& note : one.notes) {
    if (std::find(all.notes.begin(), all.notes.end(), note) == all.notes.end())
      all.notes.push_back(std::move(note));
  }
}

}  // namespace

Result<ChangeReport> apply(const sys::Host& host, const std::vector<DesiredVgpus>& wanted,
                           const Actions& actions, const ChangeOptions& options) {
  return Change(host, "apply", actions, options).run([&](const HostState& now) {
    return plan_apply(now, wanted, actions.new_uuid);
  });
}

Result<ChangeReport> restore(const sys::Host& host, const Actions& actions,
                             const ChangeOptions& options) {
  const auto run = [&](const std::vector<model::PciAddress>& gpus) {
    return Change(host, "apply --restore", actions, options).run([&](const HostState& now) {
      return plan_exact(now.gpus, gpus, now.intent.vgpus);
    });
  };
  GANTRY_TRY(const auto now, look(host));
  const auto gpus = gpus_to_restore(now);
  if (gpus.empty()) return run({});  // an interrupted change may have left nothing to mend
  ChangeReport all;
  for (const auto& gpu : gpus) {
    auto one = run({gpu});
    if (one.ok()) {
      add_report(*std::move(one), all);
    } else {
      all.failed.emplace(gpu, one.error());
    }
  }
  if (all.failed.size() == gpus.size()) return all.failed.at(gpus.front());
  return all;
}

Result<ChangeReport> create(const sys::Host& host, const Addition& addition, const Actions& actions,
                            const ChangeOptions& options) {
  return Change(host, "create", actions, options).run([&](const HostState& now) -> Result<Plan> {
    GANTRY_CHECK(refuse_interrupted(now));
    return plan_addition(now.gpus, addition, actions.new_uuid);
  });
}

Result<ChangeReport> remove(const sys::Host& host, const std::vector<std::string>& ids,
                            const Actions& actions, const ChangeOptions& options) {
  return Change(host, "remove", actions, options).run([&](const HostState& now) -> Result<Plan> {
    GANTRY_CHECK(refuse_interrupted(now));
    return plan_removal(now.gpus, ids);
  });
}

}  // namespace gantry::vgpu
