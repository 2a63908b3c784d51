// SPDX-License-Identifier: Apache-2.0
// The list of steps, and what each one does and undoes; verify_step.cpp has the check at the end.
#include "base/core/text.hpp"
#include "base/sys/deadline_read.hpp"
#include "vm/pci/read_bus.hpp"
#include "vm/vfio/plan.hpp"
#include "vm/vfio/rebind_steps_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::vfio {
namespace {

using namespace std::chrono_literals;

constexpr int kLockTries = 5;
constexpr int kIdleTries = 5;
constexpr std::chrono::seconds kUnbindLockDeadline{2};

bool is_companion(std::string_view module) {
  return std::find(kCompanionModules.begin(), kCompanionModules.end(), module) !=
         kCompanionModules.end();
}

bool leaves_driver(const FunctionMove& move) {
  return !move.from_driver.empty() && !same_driver(move.from_driver, move.to_driver);
}

std::string shown(const FunctionMove& move) {
  return move.address.sysfs();
}

std::string unbind_lock_path(const FunctionMove& move) {
  return fmt::format("/proc/driver/nvidia/gpus/{}/unbindLock", shown(move));
}

// The directory below /sys/bus/pci/drivers; a driver may spell "-" and "_" unlike its module.
Result<std::string> driver_directory(const sys::Host& host, std::string_view driver) {
  const std::string base = "/sys/bus/pci/drivers/";
  auto other = std::string(driver);
  std::replace(other.begin(), other.end(), '_', '-');
  for (const auto& name : {std::string(driver), module_name(driver), other}) {
    if (host.exists(base + name)) return base + name;
  }
  return Error(Errc::Unsupported, fmt::format("the kernel has no PCI driver {}", driver))
      .advise(fmt::format("sudo modprobe {}", module_of(driver)));
}

}  // namespace

std::vector<Step> steps_of(const Journal& journal) {
  std::vector<Step> steps;
  const auto all = [&](StepKind kind, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) steps.push_back({kind, i});
  };
  const bool binding = journal.kind == "bind";
  const auto moves = journal.moves.size();
  if (binding) all(StepKind::LoadModule, journal.modules.size());
  if (binding) all(StepKind::PersistenceOff, journal.persistence.size());
  all(StepKind::StopService, journal.services.size());
  if (!journal.nodes.empty()) steps.push_back({StepKind::CheckIdle, 0});
  if (binding) all(StepKind::TakeUnbindLock, moves);
  // The override comes first: between unbind and bind, udev must not give the function back.
  all(StepKind::SetOverride, moves);
  for (std::size_t i = 0; i < moves; ++i) {
    if (leaves_driver(journal.moves[i])) steps.push_back({StepKind::Unbind, i});
  }
  // nvidia.ko does not load (ENODEV) while other drivers have all GPUs.
  if (!binding) all(StepKind::LoadModule, journal.modules.size());
  for (std::size_t i = moves; i-- > 0;) steps.push_back({StepKind::Bind, i});
  steps.push_back({StepKind::Verify, 0});
  if (binding) all(StepKind::KeepAwake, moves);
  for (std::size_t i = 0; !binding && i < moves; ++i) {
    if (journal.moves[i].power == "auto") steps.push_back({StepKind::LetSleep, i});
  }
  all(StepKind::StartService, journal.services.size());
  if (!binding) all(StepKind::PersistenceOn, journal.persistence.size());
  return steps;
}

std::string describe(const Journal& journal, const Step& step) {
  const auto move = [&] { return journal.moves[step.index]; };
  switch (step.kind) {
    case StepKind::LoadModule: return fmt::format("load module {}", journal.modules[step.index]);
    case StepKind::PersistenceOff:
      return fmt::format("switch persistence mode of {} off",
                         journal.persistence[step.index].sysfs());
    case StepKind::PersistenceOn:
      return fmt::format("switch persistence mode of {} on",
                         journal.persistence[step.index].sysfs());
    case StepKind::StopService: return fmt::format("stop {}", journal.services[step.index]);
    case StepKind::StartService: return fmt::format("start {}", journal.services[step.index]);
    case StepKind::CheckIdle:
      return fmt::format("check that no process has {} open", fmt::join(journal.nodes, ", "));
    case StepKind::TakeUnbindLock:
      return fmt::format("ask the driver to let {} go, if it has an unbind lock", shown(move()));
    case StepKind::SetOverride:
      return move().to_override.empty()
                 ? fmt::format("clear the driver override of {}", shown(move()))
                 : fmt::format("reserve {} for {} (driver_override)", shown(move()),
                               move().to_override);
    case StepKind::Unbind:
      return fmt::format("unbind {} from {}", shown(move()), move().from_driver);
    case StepKind::Bind:
      if (move().to_driver.empty()) return fmt::format("leave {} without a driver", shown(move()));
      return move().to_driver == kAnyDriver
                 ? fmt::format("let the kernel choose the driver of {}", shown(move()))
                 : fmt::format("bind {} to {}", shown(move()), move().to_driver);
    case StepKind::Verify: return "check the drivers and the IOMMU groups";
    case StepKind::KeepAwake: return fmt::format("keep {} out of sleep states", shown(move()));
    case StepKind::LetSleep:
      return fmt::format("let {} sleep again when it is idle", shown(move()));
  }
  return "";
}

bool StepRunner::has_gone(const FunctionMove& move) const {
  const auto same = check_same_card(move);
  return !same.ok() && same.error().code() == Errc::NotFound;
}

const FunctionMove* StepRunner::move_of(const Step& step) const {
  switch (step.kind) {
    case StepKind::TakeUnbindLock:
    case StepKind::SetOverride:
    case StepKind::Unbind:
    case StepKind::Bind:
    case StepKind::KeepAwake:
    case StepKind::LetSleep: return &journal_.moves[step.index];
    default: return nullptr;
  }
}

// A card may be pulled out, or fall off the bus, at any moment; another one may come into its slot.
Status StepRunner::check_same_card(const FunctionMove& move) const {
  const auto found = pci::read_card_id(host_, move.address);
  if (!found.ok()) {
    return Error(Errc::NotFound,
                 fmt::format("{} has gone from the PCI bus since it was checked", shown(move)));
  }
  if (pci::same_card(*found, move.id)) return {};
  return Error(Errc::NotFound,
               fmt::format("{} is another card since it was checked: {}, not {}", shown(move),
                           pci::to_string(*found), pci::to_string(move.id)));
}

Status StepRunner::set_override(const FunctionMove& move, const std::string& driver) const {
  GANTRY_TRY(const auto present, pci::read_driver_override(host_, move.address));
  if (present == driver) return {};
  const auto path = pci::device_path(move.address) + "/driver_override";
  return effects_.write(path, driver.empty() ? "\n" : driver + "\n");
}

Status StepRunner::unbind(const FunctionMove& move) const {
  if (pci::read_driver(host_, move.address).empty()) return {};
  auto wrote = effects_.write(pci::device_path(move.address) + "/driver/unbind", shown(move));
  // Another program was quicker: what counts is that no driver is left.
  if (!wrote.ok() && wrote.error().code() != Errc::Timeout &&
      pci::read_driver(host_, move.address).empty()) {
    return {};
  }
  return wrote;
}

Status StepRunner::bind(const FunctionMove& move, const std::string& driver) const {
  const auto present = pci::read_driver(host_, move.address);
  if (driver.empty() || (!present.empty() && same_driver(present, driver))) return {};
  if (driver == kAnyDriver) {
    if (!present.empty()) return {};
    return effects_.write("/sys/bus/pci/drivers_probe", shown(move));
  }
  if (!present.empty()) {
    return Error(Errc::Busy,
                 fmt::format("the driver {} has taken {} meanwhile", present, shown(move)));
  }
  GANTRY_TRY(const auto directory, driver_directory(host_, driver));
  auto wrote = effects_.write(directory + "/bind", shown(move));
  if (!wrote.ok() && wrote.error().code() == Errc::Timeout) return wrote;
  if (same_driver(pci::read_driver(host_, move.address), driver)) return {};
  if (!wrote.ok()) return wrote;
  return Error(Errc::Internal,
               fmt::format("the kernel accepted the write, but {} has the driver "
                           "\"{}\" and not {}",
                           shown(move), pci::read_driver(host_, move.address), driver));
}

// The vGPU host's driver has this file. 0 after the write means that the GPU is in use. The read
// takes a lock of the driver, as the write does.
Status StepRunner::take_unbind_lock(const FunctionMove& move) const {
  const auto path = unbind_lock_path(move);
  if (!host_.exists(path)) return {};
  for (int i = 0; i < kLockTries; ++i) {
    GANTRY_CHECK(effects_.write(path, "1\n"));
    GANTRY_TRY(const auto value, sys::read_with_deadline(host_, path, kUnbindLockDeadline));
    if (trim(value) != "0") return {};
    effects_.pause(200ms * (i + 1));
  }
  return Error(Errc::Busy,
               fmt::format("the driver does not let {} go: a process uses it", shown(move)));
}

// While the lock is taken, the driver refuses every open of the GPU.
Status StepRunner::give_unbind_lock_back(const FunctionMove& move) const {
  const auto path = unbind_lock_path(move);
  if (!host_.exists(path)) return {};
  return effects_.write(path, "0\n");
}

// A service that was just stopped closes its descriptors a moment later.
Status StepRunner::check_idle() const {
  for (int i = 0;; ++i) {
    const auto search = search_holders(host_, journal_.nodes);
    const auto& holders = search.holders;
    if (holders.empty()) return check_all_readable(search);
    if (i < kIdleTries) {
      effects_.pause(200ms);
      continue;
    }
    return Error(Errc::Busy, describe(holders.front()))
        .advise("end the process, or wait for it with --drain");
  }
}

// The GPU goes back to its driver without a companion, and to none if the kernel shall choose one.
bool StepRunner::is_needed(std::string_view module) const {
  if (is_companion(module)) return false;
  if (journal_.kind == "bind") return true;
  return std::any_of(journal_.moves.begin(), journal_.moves.end(),
                     [&](const FunctionMove& move) { return module_of(move.to_driver) == module; });
}

void StepRunner::note_once(std::string text) {
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(std::move(text));
}

Status StepRunner::run_service(std::string_view verb, const std::string& unit) const {
  return effects_.run({"systemctl", std::string(verb), unit});
}

Status StepRunner::set_persistence(const model::PciAddress& gpu, std::string_view value) const {
  return effects_.run({"nvidia-smi", "-i", gpu.sysfs(), "-pm", std::string(value)});
}

void StepRunner::note_failure(std::string_view doing, const Status& done) {
  if (done.ok()) return;
  notes.push_back(fmt::format("could not {}: {}", doing, done.error().text()));
}

void StepRunner::let_sleep(const FunctionMove& move) {
  const auto path = pci::device_path(move.address) + "/power/control";
  if (move.power != "auto" || !host_.exists(path)) return;
  note_failure(fmt::format("let {} sleep again", shown(move)), effects_.write(path, "auto\n"));
}

Status StepRunner::execute(const Step& step) {
  const auto* move = move_of(step);
  if (move != nullptr) GANTRY_CHECK(check_same_card(*move));
  switch (step.kind) {
    case StepKind::LoadModule: {
      const auto& module = journal_.modules[step.index];
      auto loaded = effects_.load_module(module);
      if (is_needed(module)) return loaded;
      note_failure(describe(journal_, step), loaded);
      return {};
    }
    case StepKind::PersistenceOff: return set_persistence(journal_.persistence[step.index], "0");
    case StepKind::StopService: return run_service("stop", journal_.services[step.index]);
    case StepKind::CheckIdle: return check_idle();
    case StepKind::TakeUnbindLock: return take_unbind_lock(*move);
    case StepKind::SetOverride: {
      // The override must be spelled exactly like the driver, which is loaded by now.
      const auto exact = driver_directory(host_, move->to_override);
      const bool found = !move->to_override.empty() && exact.ok();
      return set_override(*move, found ? exact->substr(exact->rfind('/') + 1) : move->to_override);
    }
    case StepKind::Unbind: return unbind(*move);
    case StepKind::Bind: return bind(*move, move->to_driver);
    case StepKind::Verify: return verify();
    // From here on the work is done; a failure takes nothing back.
    case StepKind::KeepAwake: {
      const auto path = pci::device_path(move->address) + "/power/control";
      if (host_.exists(path)) note_failure(describe(journal_, step), effects_.write(path, "on\n"));
      return {};
    }
    case StepKind::LetSleep: let_sleep(*move); return {};
    case StepKind::StartService:
      note_failure(describe(journal_, step), run_service("start", journal_.services[step.index]));
      return {};
    case StepKind::PersistenceOn:
      note_failure(describe(journal_, step),
                   set_persistence(journal_.persistence[step.index], "1"));
      return {};
  }
  return {};
}

Status StepRunner::undo(const Step& step) {
  const auto* move = move_of(step);
  if (move != nullptr) GANTRY_CHECK(check_same_card(*move));
  switch (step.kind) {
    // A service that does not start, or an nvidia-smi that is missing, must not keep a GPU in
    // between whose functions have their drivers again.
    case StepKind::PersistenceOff: {
      const auto& gpu = journal_.persistence[step.index];
      note_failure(fmt::format("switch persistence mode of {} on again", gpu.sysfs()),
                   set_persistence(gpu, "1"));
      return {};
    }
    case StepKind::StopService: {
      const auto& unit = journal_.services[step.index];
      note_failure(fmt::format("start {} again", unit), run_service("start", unit));
      return {};
    }
    case StepKind::TakeUnbindLock: return give_unbind_lock_back(*move);
    case StepKind::KeepAwake: let_sleep(*move); return {};
    case StepKind::SetOverride: return set_override(*move, move->from_override);
    case StepKind::Unbind: return return_to_old_driver(*move);
    case StepKind::Bind: return leave_new_driver(*move);
    default: return {};
  }
}

Status StepRunner::leave_new_driver(const FunctionMove& move) const {
  const auto present = pci::read_driver(host_, move.address);
  if (present.empty() || same_driver(present, move.from_driver)) return {};
  return unbind(move);
}

Status StepRunner::return_to_old_driver(const FunctionMove& move) const {
  GANTRY_CHECK(set_override(move, move.from_override));
  GANTRY_CHECK(leave_new_driver(move));
  return bind(move, move.from_driver);
}

}  // namespace gantry::vfio
