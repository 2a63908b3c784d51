// SPDX-License-Identifier: Apache-2.0
// gantry mig apply, plan, restore: one GPU after the other, each a transaction of its own.
#include "base/core/clock.hpp"
#include "base/sys/kernel.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/mig_commands.hpp"
#include "gantry/mig_owner.hpp"
#include "gantry/refresh_cdi.hpp"
#include "gantry/terminal.hpp"
#include "gpu/mig_change/device_nodes.hpp"
#include "gpu/reset/reset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace gantry::cli {
namespace {

constexpr std::chrono::seconds kLookAgain{1};

using mig_change::ChangeReport;
using mig_change::ChangeRequest;

// The name of the command that repeats it, whatever it came from: a file may have changed since.
std::string apply_command(const sys::Host& host, const MigFlags& flags, const MigTarget& target) {
  return fmt::format("gantry mig apply --gpu {} {}{}{}{}", target.gpu.pci.sysfs(),
                     mig::to_words(target.request), flags.mode_only ? " --mode-only" : "",
                     flags.reset ? " --reset" : "", sys::root_flag(host));
}

std::string restore_command(const sys::Host& host, const MigFlags& flags,
                            const model::PciAddress& gpu) {
  return fmt::format("gantry mig restore{} --gpu {}{}", flags.former ? " --former" : "",
                     gpu.sysfs(), sys::root_flag(host));
}

std::vector<model::GpuUuid> held_instances(const MigView& view) {
  std::vector<model::GpuUuid> held;
  for (const auto& [uuid, users] : view.users) {
    if (users && !users->empty()) held.push_back({uuid});
  }
  return held;
}

// The processes that NVML sees on what goes: an agent or a user without rights may not see them by
// their descriptors. Busy: nothing was done.
Status check_no_processes(const sys::Host& host, const MigOutcome& outcome,
                          const std::vector<mig_change::Step>& steps,
                          mig_change::LiveDriver& driver) {
  const auto machine = driver.read();
  if (!machine.ok()) return Error(Errc::Busy, machine.error().text());
  const bool whole = mig_change::changes_mode(steps);
  const auto going = mig_change::going_instances(steps);
  for (const auto& process : machine->processes) {
    const auto is_on = [&](const mig_change::GoingInstance& one) {
      return one.gpu_instance == process.gpu_instance &&
             one.compute_instance == process.compute_instance;
    };
    if (process.gpu != outcome.gpu.pci) continue;
    if (!whole && std::none_of(going.begin(), going.end(), is_on)) continue;
    return Error(Errc::Busy, fmt::format("{} uses compute instance {} of GPU instance {} of {}",
                                         name_process(host, process.pid), process.compute_instance,
                                         process.gpu_instance, outcome.gpu.pci.sysfs()))
        .advise(fmt::format("end it: sudo kill {}", process.pid));
  }
  return {};
}

// Looks again until they have ended, or as long as allowed.
Status wait_for_no_processes(const sys::Host& host, const MigOutcome& outcome,
                             const std::vector<mig_change::Step>& steps,
                             mig_change::LiveDriver& driver, Clock::time_point until,
                             const Context& context) {
  for (bool told = false;; told = true) {
    auto free = check_no_processes(host, outcome, steps, driver);
    if (free.ok() || Clock::now() >= until) return free;
    if (!told) print_note("waiting: " + free.error().cause(), context);
    std::this_thread::sleep_for(kLookAgain);
  }
}

void note_users(const MigView& view, const std::vector<mig_change::Step>& steps,
                MigOutcome& outcome) {
  for (const auto& going : mig_change::going_instances(steps)) {
    const auto users = view.users.find(going.uuid.text);
    if (users == view.users.end() || !users->second || users->second->empty()) continue;
    outcome.in_the_way[going.uuid.text] = *users->second;
  }
}

Status reset_for_mode(const sys::Host& host, const model::PciAddress& gpu) {
  if (!sys::real_kernel()->is_this_machine(host))
    return Error(Errc::Unsupported,
                 "only a machine's own kernel can reset its GPUs, and this is another machine");
  GANTRY_TRY(const auto plan, reset::plan_reset(host, gpu));
  return reset::run_reset(host, plan, reset::write_to_kernel(host));
}

class MigCommand {
 public:
  MigCommand(const sys::Host& host, const MigFlags& flags, mig_change::LiveDriver& driver,
             const MigView& view, Context& context)
      : host_(host),
        flags_(flags),
        driver_(driver),
        view_(view),
        context_(context),
        actions_(driver.actions(reset_of(host, flags))) {}

  // What it would do. Every refusal comes before the first GPU is changed.
  Status preview(const mig::MigGpu& gpu, const ChangeRequest& request, std::string picture = "") {
    GANTRY_CHECK(check_no_other_change(host_, gpu.pci));
    MigOutcome outcome{.gpu = gpu};
    GANTRY_TRY(outcome.report, mig_change::preview(host_, request, actions_));
    outcome.kept = mig_change::kept_instances(gpu, outcome.report.steps);
    note_users(view_, outcome.report.steps, outcome);
    outcome.picture = std::move(picture);
    outcomes_.push_back(std::move(outcome));
    requests_.push_back(request);
    return {};
  }

  // One GPU that cannot be restored does not keep the others from it.
  void add_failed(const mig::MigGpu& gpu, const Error& why) {
    outcomes_.push_back({.gpu = gpu, .failed = why});
    requests_.emplace_back();
  }

  std::vector<MigOutcome> run() {
    bool begun = false;
    for (std::size_t i = 0; i < outcomes_.size(); ++i) {
      if (flags_.dry_run || outcomes_[i].failed) continue;
      auto done = change(outcomes_[i], requests_[i], begun);
      if (!done.ok()) outcomes_[i].failed = done.error();
    }
    if (begun) refresh_cdi(host_, context_);
    return std::move(outcomes_);
  }

 private:
  static mig_change::LiveDriver::Reset reset_of(const sys::Host& host, const MigFlags& flags) {
    if (!flags.reset) return {};
    return [&host](const model::PciAddress& gpu) { return reset_for_mode(host, gpu); };
  }

  Status change(MigOutcome& outcome, const ChangeRequest& request, bool& begun) {
    const auto steps = std::move(outcome.report.steps);
    outcome.report.steps.clear();
    const std::chrono::milliseconds wait(static_cast<long>(flags_.drain_seconds * 1000));
    const auto until = Clock::now() + wait;
    const MigLease lease{.gpu = outcome.gpu, .steps = steps, .what = request.what, .wait = wait};
    driver_.close();  // it would be in its own way where the whole card must be unused
    return with_mig_lease(host_, lease, context_, [&]() -> Status {
      GANTRY_CHECK(check_unchanged(outcome, request, steps));
      GANTRY_CHECK(wait_for_no_processes(host_, outcome, steps, driver_, until, context_));
      begun = begun || !steps.empty();
      GANTRY_TRY(outcome.report, mig_change::apply(host_, request, actions_));
      make_nodes(outcome.report.gpu);
      return {};
    });
  }

  // Before the agent describes the instances to the kubelet.
  void make_nodes(const mig::MigGpu& gpu) {
    const auto made = mig_change::make_instance_nodes(host_, gpu, *sys::real_kernel());
    if (made.ok()) return;
    print_note(fmt::format("the device nodes of the new instances are missing (`sudo gantry doctor "
                           "--fix` makes them): {}",
                           made.error().text()),
               context_);
  }

  // The lease is for the instances that were seen before it.
  Status check_unchanged(const MigOutcome& outcome, const ChangeRequest& request,
                         const std::vector<mig_change::Step>& steps) {
    const auto now = mig_change::preview(host_, request, actions_);
    if (!now.ok()) return Error(Errc::Busy, now.error().text());
    if (now->steps == steps) return {};
    return Error(Errc::Busy, fmt::format("another program changed the instances of {} at the same "
                                         "time; nothing was done",
                                         mig_label(outcome.gpu)))
        .advise("repeat the command");
  }

  const sys::Host& host_;
  const MigFlags& flags_;
  mig_change::LiveDriver& driver_;
  const MigView& view_;
  Context& context_;
  mig_change::Actions actions_;
  std::vector<MigOutcome> outcomes_;
  std::vector<ChangeRequest> requests_;
};

Result<ChangeRequest> restore_request(const sys::Host& host, const MigFlags& flags,
                                      const model::PciAddress& gpu) {
  GANTRY_TRY(auto planner, flags.former ? mig_change::former_planner(host, gpu)
                                        : mig_change::restore_planner(host, gpu));
  return ChangeRequest{
      .gpu = gpu, .what = restore_command(host, flags, gpu), .planner = std::move(planner)};
}

bool is_to_restore(const mig_change::GpuState& state, const MigFlags& flags) {
  return flags.former ? state.change.has_value() : state.change || state.stored;
}

}  // namespace

Result<std::vector<MigOutcome>> change_mig(const sys::Host& host, const MigFlags& flags,
                                           const std::vector<MigTarget>& targets,
                                           mig_change::LiveDriver& driver, const MigView& view,
                                           Context& context) {
  MigCommand command(host, flags, driver, view, context);
  const auto held = held_instances(view);
  for (const auto& target : targets) {
    const ChangeRequest request{
        .gpu = target.gpu.pci,
        .what = apply_command(host, flags, target),
        .planner = [request = target.request,
                    held](const auto& gpu) { return plan_mig(gpu, request, held); },
        .mode_only = flags.mode_only};
    const bool drawn = flags.dry_run && !flags.mode_only;
    auto picture =
        drawn ? picture_of_change(target.gpu, target.request, context.columns) : std::string();
    GANTRY_CHECK(command.preview(target.gpu, request, std::move(picture)));
  }
  return command.run();
}

Result<std::vector<MigOutcome>> restore_mig(const sys::Host& host, const MigFlags& flags,
                                            mig_change::LiveDriver& driver, const MigView& view,
                                            Context& context) {
  if (!view.stored.problems.empty()) return view.stored.problems.front();
  std::vector<mig::MigGpu> gpus;
  if (flags.gpus.empty()) {
    gpus = view.gpus;
  } else {
    GANTRY_TRY(gpus, chosen_mig_gpus(view.gpus, flags.gpus, true));
  }
  MigCommand command(host, flags, driver, view, context);
  bool any = false;
  for (const auto& gpu : gpus) {
    const auto* state = view.state_of(gpu.pci);
    if (state == nullptr || !is_to_restore(*state, flags)) continue;
    any = true;
    const auto request = restore_request(host, flags, gpu.pci);
    const auto seen = request.ok() ? command.preview(gpu, *request) : Status(request.error());
    if (!seen.ok()) command.add_failed(gpu, seen.error());
  }
  if (!any && flags.former) return Error(Errc::NotFound, "no change of MIG was interrupted");
  return command.run();
}

}  // namespace gantry::cli
