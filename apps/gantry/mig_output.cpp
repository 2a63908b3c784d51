// SPDX-License-Identifier: Apache-2.0
// What `gantry mig` prints.
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/mig_commands.hpp"
#include "gantry/table.hpp"
#include "gpu/model/enum_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gantry::cli {
namespace {

using mig::MigGpu;
using model::MigMode;

std::string mode_text(const MigGpu& gpu) {
  const auto word = [](MigMode mode) -> std::string {
    if (mode == MigMode::Enabled) return "on";
    if (mode == MigMode::Disabled) return "off";
    return mode == MigMode::Unsupported ? "none" : "unknown";
  };
  if (gpu.pending == gpu.current) return word(gpu.current);
  return fmt::format("{}, {} after a reset", word(gpu.current), word(gpu.pending));
}

std::string slices_text(const mig::Placement& place) {
  if (place.size <= 1) return fmt::to_string(place.start);
  return fmt::format("{}-{}", place.start, place.start + place.size - 1);
}

std::string users_text(const MigView& view, const std::string& uuid) {
  const auto found = view.users.find(uuid);
  if (found == view.users.end() || !found->second) return "?";
  if (found->second->empty()) return "-";
  const auto more = found->second->size() - 1;
  return more == 0 ? found->second->front()
                   : fmt::format("{} and {} more", found->second->front(), more);
}

void add_instance(const MigGpu& gpu, const mig::GpuInstance& instance, const MigView& view,
                  Table& table) {
  const auto row = [&](const std::string& profile, const std::string& compute,
                       const std::string& uuid, const std::string& users) {
    table.add({fmt::to_string(gpu.index), profile, slices_text(instance.place),
               fmt::to_string(instance.id), compute, uuid, users});
  };
  if (instance.compute.empty()) row(instance.profile, "-", "-", "-");
  for (const auto& compute : instance.compute)
    row(compute.profile, fmt::to_string(compute.id),
        compute.uuid.text.empty() ? "?" : compute.uuid.text, users_text(view, compute.uuid.text));
}

using Names = std::vector<std::string>;

void write_users(json::Writer& out, const std::string& uuid, const Names& users) {
  out.object([&] {
    out.member("uuid", uuid);
    out.array("users", users);
  });
}

void write_change(json::Writer& out, const MigOutcome& outcome) {
  out.object([&] {
    out.member("index", outcome.gpu.index);
    out.member("gpu", outcome.gpu.pci.sysfs());
    out.member("uuid", outcome.gpu.uuid.text);
    out.array("steps", outcome.report.steps,
              [&](const auto& step) { out.value(mig_change::describe(step)); });
    out.array("kept", outcome.kept, [&](const auto& uuid) { out.value(uuid.text); });
    out.array("in_the_way", [&] {
      for (const auto& [uuid, users] : outcome.in_the_way) write_users(out, uuid, users);
    });
    out.member("layout", mig_change::describe(mig_change::layout_of(outcome.report.gpu)));
    out.member("pending", outcome.report.pending);
    out.member("error", outcome.failed ? outcome.failed->text() : std::string());
  });
}

void print_mig_preview(const MigOutcome& outcome, const Context& context) {
  if (outcome.report.steps.empty()) {
    fmt::print(context.out, "{} has this layout already.\n", mig_label(outcome.gpu));
  } else if (!outcome.picture.empty()) {
    fmt::print(context.out, "{}", printable_lines(outcome.picture));
  } else {
    fmt::print(context.out, "{}\n", mig_label(outcome.gpu));
    for (const auto& step : outcome.report.steps)
      fmt::print(context.out, "  would {}\n", printable(mig_change::describe(step)));
  }
  for (const auto& [uuid, users] : outcome.in_the_way)
    fmt::print(context.out, "  {} is in use by {}\n", printable(uuid),
               printable(fmt::format("{}", fmt::join(users, ", "))));
}

void print_done(const MigOutcome& outcome, const Context& context) {
  if (outcome.report.steps.empty()) {
    if (!context.quiet)
      fmt::print(context.out, "{} has this layout already.\n", mig_label(outcome.gpu));
    return;
  }
  fmt::print(context.out, "{}\n", mig_label(outcome.gpu));
  for (const auto& step : outcome.report.steps)
    fmt::print(context.out, "  {}\n", printable(mig_change::describe(step)));
  fmt::print(context.out, "  has now: {}\n",
             printable(mig_change::describe(mig_change::layout_of(outcome.report.gpu))));
}

void note_pending(const MigOutcome& outcome, const Context& context) {
  print_note(
      fmt::format("the MIG mode of {} changes at its next reset ({}). Repeat the command with "
                  "--reset, or run `sudo gantry gpu reset {}` or reboot, then `sudo gantry mig "
                  "restore`; the layout is stored",
                  mig_label(outcome.gpu), printable(outcome.report.pending),
                  outcome.gpu.pci.sysfs()),
      context);
}

}  // namespace

std::string mig_instances_table(const std::vector<MigGpu>& gpus, const MigView& view,
                                std::size_t columns) {
  Table cards({"GPU", "ADDRESS", "NAME", "MIG"});
  Table instances({"GPU", "PROFILE", "SLICES", "GI", "CI", "UUID", "IN USE BY"});
  for (const auto& gpu : gpus) {
    cards.add({fmt::to_string(gpu.index), gpu.pci.sysfs(), gpu.name, mode_text(gpu)});
    for (const auto& instance : gpu.instances) add_instance(gpu, instance, view, instances);
  }
  if (instances.empty()) return cards.text(columns);
  return cards.text(columns) + "\n" + instances.text(columns);
}

std::string mig_profiles_table(const std::vector<MigGpu>& gpus, std::size_t columns) {
  Table table({"GPU", "PROFILE", "ID", "AT MOST", "SM", "MEMORY", "BEGINS AT"});
  for (const auto& gpu : gpus) {
    for (const auto& profile : gpu.profiles) {
      std::vector<unsigned> starts;
      for (const auto& place : profile.places) starts.push_back(place.start);
      table.add({fmt::to_string(gpu.index), profile.name, fmt::to_string(profile.id),
                 fmt::to_string(profile.max), fmt::to_string(profile.multiprocessors),
                 fmt::format("{} MiB", profile.memory_mib),
                 fmt::format("{}", fmt::join(starts, ","))});
    }
  }
  return table.text(columns);
}

std::string mig_json(const std::vector<MigGpu>& gpus, const MigView& view) {
  json::Writer out;
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.array("gpus", gpus, [&](const MigGpu& gpu) {
      const auto* state = view.state_of(gpu.pci);
      out.object([&] {
        mig_nvml::write_gpu(out, gpu);
        out.member("stored", state != nullptr && state->stored
                                 ? mig_change::describe(*state->stored)
                                 : std::string());
        out.member("interrupted",
                   state != nullptr && state->change ? state->change->what : std::string());
      });
    });
    out.array("users", [&] {
      for (const auto& [uuid, users] : view.users) write_users(out, uuid, users.value_or(Names{}));
    });
  });
  return std::move(out).text();
}

std::string mig_change_json(const std::vector<MigOutcome>& outcomes, bool dry_run) {
  json::Writer out;
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.member("dry_run", dry_run);
    out.array("gpus", outcomes, [&](const MigOutcome& outcome) { write_change(out, outcome); });
  });
  return std::move(out).text();
}

int print_mig_changes(const std::vector<MigOutcome>& outcomes, const MigFlags& flags,
                      const Context& context) {
  int status = kOk;
  for (const auto& outcome : outcomes) {
    const bool pending = !flags.dry_run && !outcome.report.pending.empty();
    if (outcome.failed || pending) status = kProblem;
    if (context.json) continue;
    if (outcome.failed) {
      fmt::print(context.err, "gantry mig: {}: {}\n", mig_label(outcome.gpu),
                 printable_lines(sys::with_root(outcome.failed->text(), context.root)));
      continue;
    }
    if (flags.dry_run) {
      print_mig_preview(outcome, context);
    } else {
      print_done(outcome, context);
    }
    if (pending) note_pending(outcome, context);
  }
  if (context.json) fmt::print(context.out, "{}\n", mig_change_json(outcomes, flags.dry_run));
  if (outcomes.empty() && !context.json) fmt::print(context.out, "Nothing to do.\n");
  return status;
}

}  // namespace gantry::cli
