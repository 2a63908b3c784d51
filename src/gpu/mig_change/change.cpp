// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig_change/change.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace gantry::mig_change {
namespace {

using mig::MigGpu;
using model::MigMode;

Error with_code(Errc code, const Error& error) {
  return Error(code, error.cause()).advise(error.remedy());
}

// The caller must know that something was done and taken back: Busy would mean that nothing was.
Error taken_back(const Error& cause) {
  const bool unclear = cause.code() == Errc::Internal || cause.code() == Errc::Busy;
  return (unclear ? with_code(Errc::Denied, cause) : Error(cause)).in("all is as it was before");
}

// What must be read again before it can be created: the driver told no profiles before.
bool knows_profiles(const MigGpu& gpu) {
  return !gpu.profiles.empty();
}

const mig::GpuProfile* find_profile(const MigGpu& gpu, const std::string& name) {
  const auto found = std::find_if(gpu.profiles.begin(), gpu.profiles.end(),
                                  [&](const auto& profile) { return profile.name == name; });
  return found == gpu.profiles.end() ? nullptr : &*found;
}

Error no_profile(const MigGpu& gpu, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& profile : gpu.profiles) names.push_back(profile.name);
  return {Errc::NotFound, fmt::format("{} ({}) has no profile {}; it has {}", gpu.pci.sysfs(),
                                      gpu.name, name, fmt::join(names, ", "))};
}

// "3g.71gb" of "1c.3g.71gb".
std::string gpu_profile_of(const std::string& compute) {
  const auto dot = compute.find("c.");
  return dot == std::string::npos ? compute : compute.substr(dot + 2);
}

class Change {
 public:
  Change(const sys::Host& host, const ChangeRequest& request, const Actions& actions)
      : host_(host), request_(request), actions_(actions) {}

  Result<ChangeReport> preview() {
    GANTRY_CHECK(look());
    GANTRY_TRY(report_.steps, plan());
    return std::move(report_);
  }

  Result<ChangeReport> run() {
    std::vector<Step> steps;
    const auto begun = prepare(steps);
    // Nothing was done yet, so an earlier change that was interrupted is as unfinished as before.
    if (!begun.ok()) return with_code(Errc::Busy, begun.error());
    if (steps.empty()) return finish();
    const bool knew_profiles = knows_profiles(report_.gpu);
    auto done = act(steps);
    if (done.ok() && !knew_profiles && report_.pending.empty()) done = plan_and_act_again();
    if (!done.ok()) return give_up(done.error());
    return finish();
  }

 private:
  Status prepare(std::vector<Step>& steps) {
    GANTRY_CHECK(look());
    GANTRY_TRY(steps, plan());
    return steps.empty() ? Status{} : begin();
  }

  Status look() {
    GANTRY_TRY(report_.gpu, actions_.read(request_.gpu));
    GANTRY_TRY(state_, read_state(host_, request_.gpu));
    const bool other_card = !state_.uuid.text.empty() && state_.uuid != report_.gpu.uuid;
    if (other_card) state_ = {.gpu = request_.gpu};
    state_.uuid = report_.gpu.uuid;
    return {};
  }

  Result<std::vector<Step>> plan() {
    GANTRY_TRY(wanted_, request_.planner(report_.gpu));
    if (request_.mode_only && wanted_.enabled) wanted_.instances = layout_of(report_.gpu).instances;
    return steps_to(report_.gpu, wanted_);
  }

  // The planner could not know the places before.
  Status plan_and_act_again() {
    GANTRY_TRY(const auto steps, plan());
    if (steps.empty()) return {};
    auto next = state_;
    next.change->wanted = wanted_;
    GANTRY_CHECK(save(next).in("storing the change"));
    return act(steps);
  }

  // The layout before the first of several interrupted changes is the one to go back to.
  Status begin() {
    former_ = state_.change ? state_.change->former : layout_of(report_.gpu);
    auto next = state_;
    next.change = StoredChange{.what = request_.what, .former = former_, .wanted = wanted_};
    return save(next).in("storing the change");
  }

  Status save(const GpuState& state) {
    GANTRY_CHECK(actions_.save(state_path(request_.gpu), to_json(state)));
    state_ = state;
    return {};
  }

  Status act(const std::vector<Step>& steps) {
    for (const auto& step : steps) {
      GANTRY_CHECK(act_step(step));
      if (!report_.pending.empty()) return {};  // no instance before the reset
    }
    GANTRY_TRY(report_.gpu, actions_.read(request_.gpu).in("checking the result"));
    const auto left = steps_to(report_.gpu, wanted_);
    if (left.empty()) return {};
    return Error(Errc::Internal,
                 fmt::format("the driver answered that all is done, but {} is still "
                             "to be done: {}",
                             request_.gpu.sysfs(), describe(left.front())));
  }

  Status act_step(const Step& step) {
    if (actions_.progress) actions_.progress(step);
    auto done = run_step(step);
    if (!done.ok()) return std::move(done).in(describe(step));
    report_.steps.push_back(step);
    return {};
  }

  Status run_step(const Step& step) {
    switch (step.kind) {
      case StepKind::DestroyCompute:
        return ignore_missing(actions_.destroy_compute_instance(request_.gpu, step.gpu_instance,
                                                                step.compute_instance));
      case StepKind::DestroyInstance:
        return ignore_missing(actions_.destroy_gpu_instance(request_.gpu, step.gpu_instance));
      case StepKind::SetMode: return set_mode(step.enable);
      case StepKind::CreateInstance: return create_instance(step);
      case StepKind::CreateCompute: return create_compute(step);
    }
    return {};
  }

  static Status ignore_missing(Status status) {
    if (!status.ok() && status.error().code() == Errc::NotFound) return {};
    return status;
  }

  Status set_mode(bool enable) {
    GANTRY_TRY(auto why, actions_.set_mode(request_.gpu, enable));
    GANTRY_TRY(report_.gpu, actions_.read(request_.gpu));
    const auto mode = enable ? MigMode::Enabled : MigMode::Disabled;
    if (report_.gpu.pending == mode && report_.gpu.current == mode) return {};
    if (report_.gpu.pending != mode)
      return Error(Errc::Internal,
                   "the driver accepted the mode, but it is neither in effect nor pending");
    if (why.empty()) why = "the mode is pending";
    if (!actions_.reset || in_way_back_) {
      report_.pending = why;
      return {};
    }
    GANTRY_CHECK(actions_.reset(request_.gpu).in("resetting the GPU"));
    GANTRY_TRY(report_.gpu, actions_.read(request_.gpu));
    if (report_.gpu.current == mode) return {};
    return Error(Errc::Internal, "the mode is not in effect after the reset");
  }

  Status create_instance(const Step& step) {
    if (!knows_profiles(report_.gpu)) {
      GANTRY_TRY(report_.gpu, actions_.read(request_.gpu));
    }
    const auto* profile = find_profile(report_.gpu, step.profile);
    if (profile == nullptr) return no_profile(report_.gpu, step.profile);
    GANTRY_CHECK(actions_.create_gpu_instance(request_.gpu, profile->id, step.place));
    // The driver tells compute profiles, and their places, only of an instance that exists.
    GANTRY_TRY(report_.gpu, actions_.read(request_.gpu));
    return {};
  }

  Status create_compute(const Step& step) {
    const auto instance = std::find_if(report_.gpu.instances.begin(), report_.gpu.instances.end(),
                                       [&](const auto& one) { return one.place == step.place; });
    if (instance == report_.gpu.instances.end())
      return Error(Errc::Internal, fmt::format("there is no GPU instance at {}", step.place.start));
    const auto* around = find_profile(report_.gpu, gpu_profile_of(step.profile));
    if (around == nullptr) return no_profile(report_.gpu, step.profile);
    const auto profile = std::find_if(around->compute.begin(), around->compute.end(),
                                      [&](const auto& one) { return one.name == step.profile; });
    if (profile == around->compute.end()) return no_profile(report_.gpu, step.profile);
    GANTRY_CHECK(
        actions_.create_compute_instance(request_.gpu, instance->id, profile->id, step.compute));
    return {};
  }

  Result<ChangeReport> finish() {
    auto next = state_;
    next.change.reset();
    next.stored = report_.pending.empty() ? layout_of(report_.gpu) : wanted_;
    const bool nothing_new = next == state_ && host_.exists(state_path(request_.gpu));
    if (!nothing_new) {
      // The machine has the new layout: a repeated command records it.
      const auto saved = save(next);
      if (!saved.ok())
        return Error(Errc::Internal, saved.error().text())
            .in("the change is done, but it could not be recorded")
            .advise(fmt::format("repeat the command: {}", request_.what));
    }
    return std::move(report_);
  }

  // Back to the layout before the change. A driver that hangs may still act, so nothing more is
  // asked of it.
  Error give_up(const Error& cause) {
    if (cause.code() == Errc::Timeout) return left_in_between(cause, "");
    in_way_back_ = true;
    report_.pending.clear();
    wanted_ = former_;
    const auto back = go_back();
    if (!back.ok()) return left_in_between(cause, back.error().text());
    auto next = state_;
    next.change.reset();
    const auto saved = save(next);
    if (!saved.ok()) return left_in_between(cause, saved.error().text());
    return taken_back(cause);
  }

  Status go_back() {
    GANTRY_TRY(report_.gpu, actions_.read(request_.gpu));
    const auto steps = steps_to(report_.gpu, former_);
    GANTRY_CHECK(act(steps));
    if (!report_.pending.empty())
      return Error(Errc::Internal, fmt::format("the former mode is pending: {}", report_.pending));
    return {};
  }

  Error left_in_between(const Error& cause, const std::string& also) const {
    const auto code = cause.code() == Errc::Timeout ? Errc::Timeout : Errc::Internal;
    auto text = cause.cause();
    if (!also.empty()) text += fmt::format("; the way back failed too: {}", also);
    return Error(code, std::move(text))
        .in("the change is not complete")
        .advise(fmt::format("when the cause is gone, complete it with `sudo {}`, or go back with "
                            "`sudo gantry mig restore --former --gpu {}`",
                            request_.what, request_.gpu.sysfs()));
  }

  const sys::Host& host_;
  const ChangeRequest& request_;
  const Actions& actions_;
  GpuState state_;
  Layout wanted_;
  Layout former_;
  bool in_way_back_ = false;
  ChangeReport report_;
};

Planner always(Layout layout) {
  return [layout = std::move(layout)](const MigGpu& /*gpu*/) -> Result<Layout> { return layout; };
}

Error nothing_interrupted(const model::PciAddress& gpu) {
  return {Errc::NotFound, fmt::format("no change of {} was interrupted", gpu.sysfs())};
}

Planner keep_all() {
  return [](const MigGpu& gpu) -> Result<Layout> { return layout_of(gpu); };
}

// Another card came into the slot: what is stored is not about it.
Planner for_same_card(const GpuState& state, Planner planner) {
  return [uuid = state.uuid, planner = std::move(planner)](const MigGpu& gpu) -> Result<Layout> {
    if (uuid.text.empty() || uuid == gpu.uuid) return planner(gpu);
    return Error(Errc::Busy, fmt::format("{} is another card than the one whose layout is stored",
                                         gpu.pci.sysfs()))
        .advise("store its own with: sudo gantry mig apply");
  };
}

}  // namespace

Result<ChangeReport> preview(const sys::Host& host, const ChangeRequest& request,
                             const Actions& actions) {
  return Change(host, request, actions).preview();
}

Result<ChangeReport> apply(const sys::Host& host, const ChangeRequest& request,
                           const Actions& actions) {
  return Change(host, request, actions).run();
}

Result<Planner> restore_planner(const sys::Host& host, const model::PciAddress& gpu) {
  GANTRY_TRY(const auto state, read_state(host, gpu));
  if (state.change) return for_same_card(state, always(state.change->wanted));
  return for_same_card(state, state.stored ? always(*state.stored) : keep_all());
}

Result<Planner> former_planner(const sys::Host& host, const model::PciAddress& gpu) {
  GANTRY_TRY(const auto state, read_state(host, gpu));
  if (!state.change) return nothing_interrupted(gpu);
  return for_same_card(state, always(state.change->former));
}

Result<ChangeReport> restore(const sys::Host& host, const model::PciAddress& gpu,
                             const std::string& what, const Actions& actions) {
  GANTRY_TRY(auto planner, restore_planner(host, gpu));
  return apply(host, {.gpu = gpu, .what = what, .planner = std::move(planner)}, actions);
}

Result<ChangeReport> to_former(const sys::Host& host, const model::PciAddress& gpu,
                               const std::string& what, const Actions& actions) {
  GANTRY_TRY(auto planner, former_planner(host, gpu));
  return apply(host, {.gpu = gpu, .what = what, .planner = std::move(planner)}, actions);
}

}  // namespace gantry::mig_change
