// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/bind.hpp"

#include "base/sys/shell_command.hpp"
#include "vm/pci/read_bus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::vfio {
namespace {

using model::PciAddress;

constexpr std::chrono::seconds kPoll{1};

void add_once(std::vector<std::string>& texts, const std::string& text) {
  if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
}

bool has_driver(const sys::Host& host, std::string_view driver) {
  return host.exists(fmt::format("/sys/bus/pci/drivers/{}", driver));
}

bool is_loaded(const sys::Host& host, std::string_view module) {
  return host.exists(fmt::format("/sys/module/{}", module));
}

std::string read_power(const sys::Host& host, const PciAddress& address) {
  return host.read_value(pci::device_path(address) + "/power/control").value_or("");
}

// One sentence for all of them, with the first remedy.
Error refuse(const sys::Host& host, Errc code, const std::vector<Finding>& findings,
             Severity severity, std::string_view what) {
  std::vector<std::string> texts;
  std::string remedy;
  for (const auto& finding : findings) {
    if (finding.severity != severity) continue;
    add_once(texts, finding.text);
    if (remedy.empty()) remedy = finding.remedy;
  }
  Error error(code, fmt::format("{}: {}", what, fmt::join(texts, "; ")));
  return std::move(error).advise(sys::remedy_for(host, remedy));
}

std::string names_of(const std::vector<PciAddress>& addresses) {
  std::vector<std::string> names;
  for (const auto& address : addresses) names.push_back(address.sysfs());
  return fmt::format("{}", fmt::join(names, ", "));
}

// Reads the machine again until no process is left to wait for.
Result<Plan> plan_when_idle(const sys::Host& host, const PassthroughRequest& request,
                            const BindOptions& options, const Effects& effects) {
  auto left = options.drain ? options.drain_deadline : std::chrono::seconds(0);
  for (;;) {
    GANTRY_TRY(const auto state, read_machine_state(host));
    auto plan = plan_passthrough(state, request);
    GANTRY_CHECK(check_plan(host, plan));
    if (!plan.in_use()) return plan;
    if (left <= std::chrono::seconds(0)) {
      return refuse(host, Errc::Busy, plan.findings, Severity::InUse,
                    fmt::format("{} {} in use", names_of(plan.targets),
                                plan.targets.size() == 1 ? "is" : "are"));
    }
    effects.pause(std::min<std::chrono::milliseconds>(kPoll, left));
    left -= kPoll;
  }
}

// The sound and USB functions stay in their order, and the GPU comes after them.
void put_target_last(std::vector<FunctionMove>& moves, const PciAddress& target) {
  std::stable_partition(moves.begin(), moves.end(),
                        [&](const FunctionMove& move) { return move.address != target; });
}

// The way back of one GPU. A record that is there already keeps the way back of the functions that
// this work did not have to move.
Result<Journal> bound_record(const sys::Host& host, const Journal& journal,
                             const PciAddress& target) {
  GANTRY_TRY(auto old, read_bound(host, target));
  Journal record{.kind = "bind", .targets = {target}};
  if (old) {
    record.moves = std::move(old->moves);
    record.persistence = std::move(old->persistence);
    record.companions = std::move(old->companions);
  }
  for (const auto& module : journal.companions) add_once(record.companions, module);
  for (const auto& move : journal.moves) {
    if (move.target != target) continue;
    std::erase_if(record.moves, [&](const auto& other) { return other.address == move.address; });
    record.moves.push_back(move);
  }
  put_target_last(record.moves, target);
  const auto& quiet = journal.persistence;
  if (std::find(quiet.begin(), quiet.end(), target) != quiet.end()) record.persistence = {target};
  return record;
}

// In a file for each GPU: GPUs that were bound together may be released one by one.
Status write_bound_records(const sys::Host& host, const Journal& journal, const Effects& effects) {
  for (const auto& target : journal.targets) {
    GANTRY_TRY(const auto record, bound_record(host, journal, target));
    GANTRY_CHECK(effects.save(bound_path(target), to_json(record)));
  }
  return {};
}

Status record_result(const sys::Host& host, const Journal& journal, const Effects& effects) {
  if (journal.kind == "bind") {
    GANTRY_CHECK(write_bound_records(host, journal, effects));
  } else {
    for (const auto& target : journal.targets) GANTRY_CHECK(effects.remove(bound_path(target)));
  }
  return effects.remove(journal_path(journal));
}

// After the last step: records the result, then closes the journal. Both can be repeated. If it
// fails, the functions have their new drivers all the same: only `recover` can end the work.
Status finish(const sys::Host& host, const Journal& journal, const Effects& effects) {
  const auto recorded = record_result(host, journal, effects);
  if (recorded.ok()) return recorded;
  return Error(Errc::Internal, recorded.error().text()).advise("gantry vfio recover");
}

// A GPU that needs no change has no part in the journal: it is named after its first GPU, and the
// next command for a GPU that is not in it must not replace it.
void keep_moved_targets(Journal& journal) {
  std::erase_if(journal.targets, [&](const PciAddress& target) {
    return std::none_of(journal.moves.begin(), journal.moves.end(),
                        [&](const FunctionMove& move) { return move.target == target; });
  });
}

Result<BindResult> carry_out(const sys::Host& host, Journal journal, const Effects& effects) {
  BindResult result{.targets = journal.targets};
  keep_moved_targets(journal);
  GANTRY_TRY(auto moved, go_forward(host, journal, effects));
  for (const auto& step : steps_of(journal)) result.done.push_back(describe(journal, step));
  result.notes = std::move(moved.notes);
  GANTRY_CHECK(finish(host, journal, effects));
  return result;
}

Result<FunctionMove> move_back(const sys::Host& host, const FunctionMove& move) {
  FunctionMove back = move;
  back.from_driver = pci::read_driver(host, move.address);
  GANTRY_TRY(back.from_override, pci::read_driver_override(host, move.address));
  back.to_driver = move.from_driver.empty() ? std::string(kAnyDriver) : move.from_driver;
  back.to_override = move.from_override;
  return back;
}

// Functions that Gantry did not bind: vfio-pci.ids= on the kernel's command line, or by hand.
void add_moves_without_record(const sys::Host& host, const MachineState& state,
                              const PciAddress& target, std::vector<FunctionMove>& moves) {
  for (const auto* function : functions_of_card(state.bus, target)) {
    if (!pci::is_vfio_driver(function->driver) && !pci::is_vfio_driver(function->driver_override))
      continue;
    const bool recorded = std::any_of(moves.begin(), moves.end(), [&](const FunctionMove& move) {
      return move.address == function->address;
    });
    if (recorded) continue;
    const bool to_nvidia = function->is_gpu() && has_driver(host, "nvidia");
    moves.push_back({.address = function->address,
                     .target = target,
                     .id = function->id,
                     .from_driver = function->driver,
                     .from_override = function->driver_override,
                     .to_driver = to_nvidia ? "nvidia" : std::string(kAnyDriver),
                     .to_override = "",
                     .power = ""});
  }
  put_target_last(moves, target);
}

// Someone may have unloaded the driver meanwhile, or it was never loaded: if vfio-pci has all GPUs
// from boot on, the kernel has no reason to load it. Without nvidia_uvm no CUDA program starts.
void add_modules(const sys::Host& host, const MachineState& state,
                 std::vector<std::string> companions, Journal& journal) {
  bool to_nvidia = false;
  for (const auto& move : journal.moves) {
    const bool by_name = module_of(move.to_driver) == "nvidia";
    if (by_name && !has_driver(host, move.to_driver)) add_once(journal.modules, "nvidia");
    const bool maybe = is_left_to_kernel(move) && state.has_nvidia_module != false;
    to_nvidia = to_nvidia || by_name || maybe;
    if (!maybe || has_driver(host, "nvidia")) continue;
    add_once(journal.modules, "nvidia");
    add_once(companions, "nvidia_uvm");
  }
  for (const auto module : kCompanionModules) {
    const bool before = std::find(companions.begin(), companions.end(), module) != companions.end();
    if (to_nvidia && before && !is_loaded(host, module))
      add_once(journal.modules, std::string(module));
  }
}

Status check_not_unfinished(const sys::Host& host, const MachineState& state,
                            const std::vector<PciAddress>& targets) {
  auto plan = plan_passthrough(state, {.targets = targets});
  std::erase_if(plan.findings, [](const Finding& finding) {
    return finding.code != FindingCode::Unfinished && finding.code != FindingCode::Stuck;
  });
  if (!plan.blocked()) return {};
  return refuse(host, Errc::Unsupported, plan.findings, Severity::Blocker,
                fmt::format("{} cannot be released", names_of(targets)));
}

Result<Journal> journal_when_idle(const sys::Host& host, const std::vector<PciAddress>& targets,
                                  const BindOptions& options, const Effects& effects) {
  auto left = options.drain ? options.drain_deadline : std::chrono::seconds(0);
  for (;;) {
    GANTRY_TRY(const auto state, read_machine_state(host));
    GANTRY_TRY(auto journal, release_journal(host, state, targets));
    const auto search = search_holders(host, journal.nodes);
    const auto& holders = search.holders;
    if (holders.empty()) {
      GANTRY_CHECK(check_all_readable(search));
      return journal;
    }
    if (left <= std::chrono::seconds(0)) {
      return Error(Errc::Busy, fmt::format("{} is in use by a virtual machine: {}",
                                           names_of(targets), describe(holders.front())))
          .advise("shut that machine down, or wait for it with --drain");
    }
    effects.pause(std::min<std::chrono::milliseconds>(kPoll, left));
    left -= kPoll;
  }
}

Status recover_one(const sys::Host& host, Journal journal, const Effects& effects,
                   BindResult& result) {
  GANTRY_CHECK(check_recoverable(host, journal));
  journal.stuck.clear();
  const bool forward = !journal.backwards && is_past_unbind(journal);
  auto moved = forward ? go_forward(host, journal, effects) : go_back(host, journal, effects);
  if (!moved.ok()) return std::move(moved).error();
  if (forward) GANTRY_CHECK(finish(host, journal, effects));
  result.taken_back = !forward;
  result.targets.insert(result.targets.end(), journal.targets.begin(), journal.targets.end());
  result.done.push_back(fmt::format("{} the {} of {}", forward ? "finished" : "took back",
                                    journal.kind, names_of(journal.targets)));
  result.notes.insert(result.notes.end(), moved->notes.begin(), moved->notes.end());
  return {};
}

}  // namespace

Status check_plan(const sys::Host& host, const Plan& plan) {
  if (!plan.blocked()) return {};
  return refuse(host, Errc::Unsupported, plan.findings, Severity::Blocker,
                fmt::format("{} cannot be passed through", names_of(plan.targets)));
}

Journal bind_journal(const sys::Host& host, const Plan& plan) {
  Journal journal{.kind = "bind", .targets = plan.targets};
  for (const auto& function : plan.functions) {
    if (function.done()) continue;
    if (!has_driver(host, function.to_driver)) add_once(journal.modules, function.module);
    journal.moves.push_back({.address = function.address,
                             .target = function.target,
                             .id = function.id,
                             .from_driver = function.driver,
                             .from_override = function.override_,
                             .to_driver = function.to_driver,
                             .to_override = function.to_driver,
                             .power = read_power(host, function.address)});
  }
  for (const auto module : kCompanionModules) {
    if (is_loaded(host, module)) journal.companions.emplace_back(module);
  }
  journal.services = plan.services;
  journal.persistence = plan.persistence;
  journal.nodes = plan.nodes;
  return journal;
}

Result<Journal> release_journal(const sys::Host& host, const MachineState& state,
                                const std::vector<PciAddress>& targets) {
  GANTRY_CHECK(check_not_unfinished(host, state, targets));
  Journal journal{.kind = "release", .targets = targets};
  std::vector<std::string> companions;
  for (const auto& target : targets) {
    GANTRY_TRY(const auto record, read_bound(host, target));
    std::vector<FunctionMove> moves;
    if (record) {
      for (const auto& move : record->moves) {
        GANTRY_TRY(auto back, move_back(host, move));
        moves.push_back(std::move(back));
      }
      journal.persistence.insert(journal.persistence.end(), record->persistence.begin(),
                                 record->persistence.end());
      for (const auto& module : record->companions) add_once(companions, module);
    }
    add_moves_without_record(host, state, target, moves);
    journal.moves.insert(journal.moves.end(), moves.begin(), moves.end());
  }
  add_modules(host, state, std::move(companions), journal);
  for (const auto& move : journal.moves) {
    const auto* function = state.bus.find(move.address);
    if (function == nullptr) continue;
    for (const auto& node : device_nodes(state, *function)) add_once(journal.nodes, node);
  }
  return journal;
}

Result<BindResult> bind(const sys::Host& host, const PassthroughRequest& request,
                        const BindOptions& options, const Effects& effects) {
  GANTRY_TRY(const auto lock, lock_state(host));
  GANTRY_TRY(const auto plan, plan_when_idle(host, request, options, effects));
  auto journal = bind_journal(host, plan);
  if (journal.moves.empty()) return BindResult{.targets = plan.targets};
  return carry_out(host, std::move(journal), effects);
}

Result<BindResult> release(const sys::Host& host, const std::vector<PciAddress>& targets,
                           const BindOptions& options, const Effects& effects) {
  GANTRY_TRY(const auto lock, lock_state(host));
  GANTRY_TRY(auto journal, journal_when_idle(host, targets, options, effects));
  if (journal.moves.empty()) return BindResult{.targets = targets};
  return carry_out(host, std::move(journal), effects);
}

Status check_recoverable(const sys::Host& host, const Journal& journal) {
  if (journal.stuck.empty() || !has_stuck_writer(host)) return {};
  return Error(Errc::Busy, fmt::format("{} is still stuck in the kernel", names_of(journal.stuck)))
      .advise("end the processes that use it, or: sudo reboot");
}

Result<BindResult> recover(const sys::Host& host, const PciAddress& first, const Effects& effects) {
  GANTRY_TRY(const auto lock, lock_state(host));
  GANTRY_TRY(const auto journals, read_journals(host));
  const auto found = std::find_if(journals.begin(), journals.end(), [&](const Journal& journal) {
    return !journal.targets.empty() && journal.targets.front() == first;
  });
  if (found == journals.end())
    return Error(Errc::NotFound, fmt::format("no work on {} is unfinished", first.sysfs()));
  BindResult result;
  GANTRY_CHECK(recover_one(host, *found, effects, result));
  return result;
}

Result<BindResult> recover(const sys::Host& host, const Effects& effects) {
  GANTRY_TRY(const auto lock, lock_state(host));
  GANTRY_TRY(const auto journals, read_journals(host));
  BindResult result;
  std::optional<Error> first;
  for (const auto& journal : journals) {  // one that is stuck must not keep the others
    auto done = recover_one(host, journal, effects, result);
    if (!done.ok() && !first) first = std::move(done).error();
  }
  if (first) return *std::move(first);
  return result;
}

}  // namespace gantry::vfio
