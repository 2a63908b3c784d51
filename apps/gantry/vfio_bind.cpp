// SPDX-License-Identifier: Apache-2.0
// gantry vfio bind, release, recover and restore: the commands that change drivers.
#include "base/core/clock.hpp"
#include "base/core/printable.hpp"
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/refresh_cdi.hpp"
#include "gantry/terminal.hpp"
#include "gantry/vfio_commands.hpp"
#include "gantry/vfio_owner.hpp"
#include "vm/vfio/persist.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

namespace gantry::cli {
namespace {

constexpr const char* kPersistStep = "bind them again at every boot (gantry-vfio.service)";
constexpr const char* kForgetStep = "do not bind them at boot any more";
constexpr const char* kStillPersisted = "released, but they are still bound at every boot";

struct BindFlags {
  std::vector<std::string> gpus;
  bool with_nvswitches = false;
  bool persist = false;
  bool drain = false;
  bool dry_run = false;
  unsigned timeout_seconds = 60;

  std::chrono::seconds wait() const { return std::chrono::seconds(drain ? timeout_seconds : 0); }
};

// --timeout is for the whole command: what the wait for pods and processes took is not there for
// the programs that the work itself stops.
class DrainTime {
 public:
  explicit DrainTime(const BindFlags& flags) : flags_(flags), until_(Clock::now() + flags.wait()) {}

  vfio::BindOptions left() const {
    const auto rest = std::chrono::ceil<std::chrono::seconds>(until_ - Clock::now());
    return {.drain = flags_.drain, .drain_deadline = std::max(rest, std::chrono::seconds(0))};
  }

 private:
  const BindFlags& flags_;
  Clock::time_point until_;
};

// The effects of one command, and whether a GPU may have left its driver or come back: then minor
// numbers may be others, also if the work was taken back in the end.
struct DriverWork {
  vfio::Effects effects;
  bool moved = false;
};

// Makes the CDI specification again after `act`, also after one that failed.
Result<int> with_fresh_cdi(const sys::Host& host, Context& context,
                           const std::function<Result<int>(DriverWork&)>& act) {
  GANTRY_TRY(const auto effects, vfio_effects(host));
  DriverWork work{.effects = effects};
  work.effects.write = [&](const std::string& path, std::string_view text) {
    work.moved = work.moved || path.ends_with("/bind") || path.ends_with("/unbind") ||
                 path.ends_with("/drivers_probe");
    return effects.write(path, text);
  };
  work.effects.load_module = [&](const std::string& module) {
    work.moved = work.moved || module == "nvidia";
    return effects.load_module(module);
  };
  auto done = act(work);
  if (work.moved) refresh_cdi(host, context);
  return done;
}

// For the unit that binds at boot.
std::string program_path(const sys::Host& host) {
  std::array<char, 4096> path{};
  const auto size = host.is_live() ? ::readlink("/proc/self/exe", path.data(), path.size()) : -1;
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : "/usr/bin/gantry";
}

void print_result(const vfio::BindResult& result, std::string_view verb, bool dry_run,
                  const Context& context) {
  if (context.json) {
    json::Writer out(json::Layout::Indented);
    out.object([&] {
      out.member("schema", kFirstSchema);
      out.array("gpus", result.targets, [&](const auto& gpu) { out.value(gpu.sysfs()); });
      out.member("dryRun", dry_run);
      out.member("changed", result.changed() && !dry_run);
      out.array("steps", result.done);
      out.array("notes", result.notes);
    });
    fmt::print(context.out, "{}\n", out.text());
    return;
  }
  if (!result.changed()) {
    fmt::print(context.out, "{}: nothing to do\n", join_addresses(result.targets));
  }
  for (const auto& step : result.done) {
    const auto line = fmt::format("{}{}\n", dry_run ? "would " : "", printable(step));
    fmt::print(context.out, "{}", wrap_lines(line, context.columns));
  }
  if (result.changed() && !dry_run)
    fmt::print(context.out, "{}: {}\n", join_addresses(result.targets), verb);
  for (const auto& note : result.notes) print_note(printable(note), context);
}

vfio::BindResult shown_steps(const vfio::Journal& journal) {
  vfio::BindResult result{.targets = journal.targets, .done = {}, .notes = {}};
  if (journal.moves.empty()) return result;
  for (const auto& step : vfio::steps_of(journal))
    result.done.push_back(vfio::describe(journal, step));
  return result;
}

struct NamedGpus {
  vfio::MachineState state;
  std::vector<model::PciAddress> targets;
};

Result<NamedGpus> read_named_gpus(const sys::Host& host, const BindFlags& flags) {
  NamedGpus machine;
  GANTRY_TRY(machine.state, vfio::read_machine_state(host));
  GANTRY_TRY(machine.targets, find_gpus(machine.state, flags.gpus));
  return machine;
}

Result<int> dry_bind(const sys::Host& host, const BindFlags& flags, Context& context) {
  GANTRY_TRY(const auto machine, read_named_gpus(host, flags));
  const auto plan = vfio::plan_passthrough(
      machine.state, {.targets = machine.targets, .with_nvswitches = flags.with_nvswitches});
  GANTRY_CHECK(vfio::check_plan(host, plan));
  auto steps = shown_steps(vfio::bind_journal(host, plan));
  if (flags.persist) steps.done.emplace_back(kPersistStep);
  print_result(steps, "", true, context);
  if (!plan.in_use()) return kOk;
  fmt::print(context.err, "{}", printable_lines(findings_text(plan, host)));
  return flags.drain ? kOk : kProblem;
}

// Those that change their driver, and those that the ledger does not record yet.
Result<std::vector<model::PciAddress>> gpus_to_bind(const sys::Host& host, const vfio::Plan& plan) {
  GANTRY_TRY(auto gpus, not_recorded_for_vms(host, plan.targets));
  for (const auto& function : plan.functions) {
    if (!function.done() && std::find(gpus.begin(), gpus.end(), function.target) == gpus.end())
      gpus.push_back(function.target);
  }
  return gpus;
}

// Blockers are told before the GPU is withdrawn from the kubelet.
Result<vfio::BindResult> bind_as_owner(const sys::Host& host, const BindFlags& flags,
                                       const vfio::Effects& effects, Context& context) {
  const DrainTime time(flags);
  GANTRY_TRY(const auto machine, read_named_gpus(host, flags));
  const vfio::PassthroughRequest request{.targets = machine.targets,
                                         .with_nvswitches = flags.with_nvswitches};
  const auto plan = vfio::plan_passthrough(machine.state, request);
  GANTRY_CHECK(vfio::check_plan(host, plan));
  GANTRY_TRY(const auto gpus, gpus_to_bind(host, plan));
  const VfioLease lease{.gpus = gpus, .command = "gantry vfio bind", .wait = flags.wait()};
  auto result = with_vfio_lease(host, lease, context,
                                [&] { return bind(host, request, time.left(), effects); });
  if (result.ok() || !plan.complete() || result.error().code() != Errc::Busy) return result;
  return vfio::BindResult{
      .targets = plan.targets,
      .done = {},
      .notes = {fmt::format("the GPU has its vfio driver; that it belongs to virtual machines is "
                            "recorded when the command is repeated: {}",
                            result.error().cause())}};
}

Result<int> bind_and_print(const sys::Host& host, const BindFlags& flags,
                           const vfio::Effects& effects, Context& context) {
  GANTRY_TRY(auto result,
             while_waiting(context, [&] { return bind_as_owner(host, flags, effects, context); }));
  if (flags.persist) {
    GANTRY_TRY(const auto notes, vfio::persist(host, result.targets, program_path(host), effects));
    result.notes.insert(result.notes.end(), notes.begin(), notes.end());
    result.done.emplace_back(kPersistStep);
  }
  print_result(result, "bound for virtual machines", false, context);
  if (result.changed() && !context.json) {
    fmt::print(context.err, "To undo this: sudo gantry vfio release{} {}\n", sys::root_flag(host),
               join_addresses(result.targets));
  }
  return kOk;
}

Result<int> bind_gpus(const BindFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  if (flags.persist) GANTRY_CHECK(vfio::check_persist(host, program_path(host)));
  if (flags.dry_run) return dry_bind(host, flags, context);
  return with_fresh_cdi(host, context, [&](const DriverWork& work) {
    return bind_and_print(host, flags, work.effects, context);
  });
}

// A card that is persisted can be released after it was taken out of its slot.
Result<NamedGpus> read_bound_gpus(const sys::Host& host, const BindFlags& flags) {
  NamedGpus machine;
  GANTRY_TRY(machine.state, vfio::read_machine_state(host));
  GANTRY_TRY(const auto persisted, vfio::read_persisted(host));
  for (const auto& name : flags.gpus) {
    const auto address = model::PciAddress::parse(name);
    const bool known = address && std::any_of(persisted.cards.begin(), persisted.cards.end(),
                                              [&](const auto& c) { return c.address == *address; });
    if (known) {
      add_address_once(machine.targets, *address);
      continue;
    }
    GANTRY_TRY(const auto found, vfio::find_gpu(machine.state, name));
    add_address_once(machine.targets, found);
  }
  return machine;
}

Result<int> release_and_print(const sys::Host& host, const BindFlags& flags,
                              const vfio::Journal& journal, const vfio::Effects& effects,
                              Context& context) {
  const DrainTime time(flags);
  const auto& targets = journal.targets;
  VfioLease lease{
      .to = ownership::Owner::Plugin, .command = "gantry vfio release", .wait = flags.wait()};
  GANTRY_TRY(lease.gpus, gpus_to_release(host, journal));
  // Within the lease: if the program is killed before the cards are forgotten, the change of owner
  // stays unfinished, and `gantry doctor` tells to repeat the command.
  Result<bool> forgotten = false;
  const auto act = [&]() -> Result<vfio::BindResult> {
    GANTRY_TRY(auto released, release(host, targets, time.left(), effects));
    forgotten = vfio::forget(host, targets, effects);
    return released;
  };
  GANTRY_TRY(auto result,
             while_waiting(context, [&] { return with_vfio_lease(host, lease, context, act); }));
  if (!forgotten.ok()) return Error(forgotten.error()).in(kStillPersisted);
  if (*forgotten) result.done.emplace_back(kForgetStep);
  print_result(result, "released", false, context);
  return kOk;
}

Result<int> release_gpus(const BindFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  GANTRY_TRY(const auto machine, read_bound_gpus(host, flags));
  GANTRY_TRY(const auto journal, vfio::release_journal(host, machine.state, machine.targets));
  if (flags.dry_run) {
    print_result(shown_steps(journal), "", true, context);
    return kOk;
  }
  return with_fresh_cdi(host, context, [&](const DriverWork& work) {
    return release_and_print(host, flags, journal, work.effects, context);
  });
}

Result<vfio::BindResult> recover_as_owner(const sys::Host& host, const vfio::Journal& journal,
                                          const vfio::Effects& effects, Context& context) {
  GANTRY_CHECK(vfio::check_recoverable(host, journal));
  const VfioLease lease{
      .gpus = journal.targets,
      .to = journal.kind == "bind" ? ownership::Owner::Vm : ownership::Owner::Plugin,
      .command = "gantry vfio recover",
      .with_addresses = false,
      .in_between = true};
  return with_vfio_lease(host, lease, context, [&]() -> Result<vfio::BindResult> {
    GANTRY_TRY(auto result, recover(host, journal.targets.front(), effects));
    if (journal.kind != "release" || result.taken_back) return result;
    const auto forgotten = vfio::forget(host, journal.targets, effects);  // the rest of a release
    if (!forgotten.ok())
      result.notes.push_back(Error(forgotten.error()).in(kStillPersisted).text());
    if (forgotten.ok() && *forgotten) result.done.emplace_back(kForgetStep);
    return result;
  });
}

void add_result(const vfio::BindResult& one, vfio::BindResult& all) {
  all.targets.insert(all.targets.end(), one.targets.begin(), one.targets.end());
  all.done.insert(all.done.end(), one.done.begin(), one.done.end());
  all.notes.insert(all.notes.end(), one.notes.begin(), one.notes.end());
}

// One GPU that is stuck must not keep the others.
Result<vfio::BindResult> recover_all(const sys::Host& host, DriverWork& work, Context& context) {
  GANTRY_TRY(const auto journals, vfio::read_journals(host));
  vfio::BindResult all;
  std::optional<Error> first;
  for (const auto& journal : journals) {
    auto one = recover_as_owner(host, journal, work.effects, context);
    // The command that did not end may have moved it. Busy: it is as that command left it.
    work.moved = work.moved || one.ok() || one.error().code() != Errc::Busy;
    if (!one.ok()) {
      if (!first) first = std::move(one).error();
      continue;
    }
    add_result(*one, all);
  }
  if (first) return *std::move(first);
  return all;
}

Result<int> recover_and_print(const sys::Host& host, DriverWork& work, Context& context) {
  GANTRY_TRY(const auto result, recover_all(host, work, context));
  if (!result.changed() && !context.json) {
    fmt::print(context.out, "Nothing to do: no work is unfinished.\n");
    return kOk;
  }
  print_result(result, "recovered", false, context);
  return kOk;
}

Result<int> recover_gpus(Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  return with_fresh_cdi(host, context,
                        [&](DriverWork& work) { return recover_and_print(host, work, context); });
}

// The ledger has these GPUs as virtual machines' since bind; at boot it may not be reachable yet.
Result<vfio::BindResult> restore_as_owner(const sys::Host& host,
                                          const std::vector<model::PciAddress>& targets,
                                          const vfio::Effects& effects, Context& context) {
  const VfioLease lease{.gpus = recorded_for_others(host, targets), .command = "gantry vfio bind"};
  return with_vfio_lease(host, lease, context,
                         [&] { return bind(host, {.targets = targets}, {}, effects); });
}

// One card that cannot be bound must not keep the others from their virtual machines.
Result<int> restore_and_print(const sys::Host& host, const vfio::Effects& effects,
                              Context& context) {
  GANTRY_TRY(const auto persisted, vfio::read_persisted(host));
  std::vector<model::PciAddress> targets;
  int status = kOk;
  const auto fail = [&](const Error& error) {
    fmt::print(context.err, "gantry vfio restore: {}\n",
               printable_lines(sys::with_root(error.text(), context.root)));
    status = kProblem;
  };
  for (const auto& card : persisted.cards) {
    if (const auto same = check_persisted(host, card); !same.ok()) {
      fail(same.error());
    } else {
      targets.push_back(card.address);
    }
  }
  if (targets.empty()) return status;
  // Together, because GPUs may share a group; one by one if that fails.
  auto all = restore_as_owner(host, targets, effects, context);
  vfio::BindResult result;
  if (all.ok()) {
    result = *std::move(all);
  } else {
    for (const auto& target : targets) {
      const auto one = restore_as_owner(host, {target}, effects, context);
      if (one.ok()) add_result(*one, result);
      if (!one.ok()) fail(one.error());
    }
  }
  if (!result.targets.empty()) print_result(result, "bound for virtual machines", false, context);
  return status;
}

Result<int> restore_gpus(Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  return with_fresh_cdi(host, context, [&](const DriverWork& work) {
    return restore_and_print(host, work.effects, context);
  });
}

void add_bind_options(CLI::App& command, Context& context, BindFlags& flags) {
  add_machine_options(command, context);
  add_gpu_names(command, flags.gpus);
  command.add_flag("--dry-run", flags.dry_run, "Show the steps without doing them");
  command.add_flag("--drain", flags.drain, "Wait until no process has the GPU open");
  command.add_option("--timeout", flags.timeout_seconds, "How long --drain waits")
      ->type_name("SECONDS")
      ->capture_default_str();
}

}  // namespace

void add_vfio_bind(CLI::App& vfio, Context& context, Action& chosen) {
  const auto flags = std::make_shared<BindFlags>();
  auto* command = vfio.add_subcommand(
      "bind", "Give GPUs with all their functions to a vfio driver, for virtual machines");
  add_bind_options(*command, context, *flags);
  command->add_flag("--persist", flags->persist, "Also at every boot, until `gantry vfio release`");
  command->add_flag("--with-nvswitches", flags->with_nvswitches,
                    "All NVSwitches too: the whole board for one virtual machine");
  add_examples(*command,
               "  sudo gantry vfio bind 0000:3b:00.0\n"
               "  sudo gantry vfio bind 0 --drain --timeout 600   # when its processes have ended\n"
               "  gantry vfio bind 0 --dry-run\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return bind_gpus(*flags, c); }; });
}

void add_vfio_release(CLI::App& vfio, Context& context, Action& chosen) {
  const auto flags = std::make_shared<BindFlags>();
  auto* command =
      vfio.add_subcommand("release", "Give GPUs back to the drivers that they had before");
  add_bind_options(*command, context, *flags);
  add_examples(*command,
               "  sudo gantry vfio release 0000:3b:00.0\n"
               "  sudo gantry vfio release 0000:3b:00.0 --drain   # when its machine has ended\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return release_gpus(*flags, c); }; });
}

void add_vfio_recover(CLI::App& vfio, Context& context, Action& chosen) {
  auto* command = vfio.add_subcommand(
      "recover", "Finish or take back a bind or release that was killed or stuck");
  add_machine_options(*command, context);
  add_examples(*command, "  sudo gantry vfio recover\n");
  command->callback([&chosen] { chosen = [](Context& c) { return recover_gpus(c); }; });
}

void add_vfio_restore(CLI::App& vfio, Context& context, Action& chosen) {
  auto* command = vfio.add_subcommand(
      "restore", "Bind the GPUs of `bind --persist`; gantry-vfio.service calls it at boot");
  add_machine_options(*command, context);
  add_examples(*command, "  sudo gantry vfio restore\n");
  command->callback([&chosen] { chosen = [](Context& c) { return restore_gpus(c); }; });
}

}  // namespace gantry::cli
