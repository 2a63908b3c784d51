// SPDX-License-Identifier: Apache-2.0
// gantry vgpu create, remove, apply, assert.
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/terminal.hpp"
#include "gantry/vgpu_commands.hpp"
#include "gantry/vgpu_owner.hpp"
#include "vm/vgpu/state.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

constexpr std::size_t kConfigLimit = std::size_t{512} << 10;

vgpu::ChangeOptions change_options(const VgpuFlags& flags) {
  return {.vfs_deadline = std::chrono::milliseconds(static_cast<long>(flags.vfs_seconds * 1000)),
          .dry_run = flags.dry_run};
}

int print_change(const vgpu::ChangeReport& report, const VgpuFlags& flags, const Context& context) {
  const int status = report.failed.empty() ? kOk : kProblem;
  if (context.json) {
    fmt::print(context.out, "{}\n", vgpu_change_json(report, flags.dry_run));
    return status;
  }
  for (const auto& step : report.steps)
    fmt::print(context.out, "{}{}\n", flags.dry_run ? "would " : "", vgpu::describe(step));
  if (report.steps.empty() && report.failed.empty()) fmt::print(context.out, "Nothing to do.\n");
  for (const auto& note : report.notes) print_note(note, context);
  for (const auto& [gpu, error] : report.failed) {
    fmt::print(context.err, "gantry vgpu: {} was not restored: {}\n", gpu.sysfs(),
               printable_lines(sys::with_root(error.text(), context.root)));
  }
  return status;
}

// A change of vGPUs: what it makes of the GPUs, and the act itself.
struct VgpuWork {
  VgpuOwners owners;
  std::function<Result<vgpu::ChangeReport>(const vgpu::Actions&, const vgpu::ChangeOptions&)> act;
};
using PrepareWork = std::function<Result<VgpuWork>(const sys::Host& host)>;

// Refusals come before the GPU is withdrawn: what is impossible is impossible as a dry run too.
Result<vgpu::ChangeReport> change_as_owner(const sys::Host& host, const VgpuFlags& flags,
                                           const PrepareWork& prepare, Context& context) {
  GANTRY_TRY(const auto work, prepare(host));
  const auto actions = vgpu_actions(host, flags);
  auto options = change_options(flags);
  options.dry_run = true;
  auto preview = work.act(actions, options);
  if (!preview.ok() || flags.dry_run) return preview;
  return with_vgpu_lease(host, work.owners, context,
                         [&] { return work.act(actions, change_options(flags)); });
}

Result<int> change(const VgpuFlags& flags, Context& context, const PrepareWork& prepare) {
  GANTRY_TRY(const auto host, open_host(context));
  auto report =
      while_waiting(context, [&] { return change_as_owner(host, flags, prepare, context); });
  if (!report.ok()) return for_machine(host, std::move(report).error());
  return print_change(*report, flags, context);
}

Result<int> create_vgpus(const VgpuFlags& flags, Context& context) {
  return change(flags, context, [&](const sys::Host& host) -> Result<VgpuWork> {
    const auto view = view_vgpus(host);
    GANTRY_TRY(const auto* gpu, chosen_gpu(view.gpus, flags.gpu));
    const vgpu::Addition addition{
        .gpu = gpu->address, .type = flags.type, .count = flags.count, .uuid = flags.uuid};
    return VgpuWork{.owners = owners_after_create(gpu->address),
                    .act = [&host, addition](const auto& actions, const auto& options) {
                      return vgpu::create(host, addition, actions, options);
                    }};
  });
}

// All vGPUs of the named GPU, or of every GPU.
Result<std::vector<std::string>> ids_to_remove(const VgpuFlags& flags, const sys::Host& host) {
  if (!flags.all) {
    std::vector<std::string> lower;  // as the kernel writes them
    for (const auto& id : flags.ids) lower.push_back(to_lower(id));
    return lower;
  }
  const auto view = view_vgpus(host);
  if (!flags.gpu.empty()) GANTRY_CHECK(chosen_gpu(view.gpus, flags.gpu));
  std::vector<std::string> ids;
  for (const auto& gpu : view.gpus) {
    if (!flags.gpu.empty() && vgpu::find_gpu(view.gpus, flags.gpu) != &gpu) continue;
    for (const auto& one : gpu.vgpus) ids.push_back(one.id());
  }
  return ids;
}

Result<int> remove_vgpus(const VgpuFlags& flags, Context& context) {
  if (!flags.gpu.empty() && !flags.all) return Error(Errc::Invalid, "--gpu needs --all");
  if (flags.ids.empty() == !flags.all) {
    return Error(Errc::Invalid, "name the vGPUs to remove, or --all of them")
        .advise("`gantry vgpu list` shows them");
  }
  return change(flags, context, [&](const sys::Host& host) -> Result<VgpuWork> {
    GANTRY_TRY(const auto ids, ids_to_remove(flags, host));
    return VgpuWork{.owners = owners_after_remove(view_vgpus(host).gpus, ids),
                    .act = [&host, ids](const auto& actions, const auto& options) {
                      return vgpu::remove(host, ids, actions, options);
                    }};
  });
}

// The file belongs to the caller, not to the machine below --root.
Result<vgpu::VgpuConfig> read_config(const std::string& file) {
  GANTRY_TRY(const auto here, sys::Host::at("/"));
  GANTRY_TRY(const auto text, here.read(file, kConfigLimit).in("reading the configuration"));
  return vgpu::parse_config(text, file);
}

Result<int> apply_set(const VgpuFlags& flags, Context& context) {
  if (flags.file.empty() != flags.restore) {
    return Error(Errc::Invalid, flags.restore ? "--restore takes no file: it uses what was applied "
                                                "last"
                                              : "name a configuration with -f, or --restore what "
                                                "was applied last");
  }
  return apply_vgpus(flags, context);
}

// {"schema":1,"applied":true}
void print_verdict(std::string_view name, bool verdict, const Context& context) {
  json::Writer out;
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.member(name, verdict);
  });
  fmt::print(context.out, "{}\n", out.text());
}

void add_change_flags(CLI::App& command, Context& context, VgpuFlags& flags) {
  add_machine_options(command, context);
  command.add_flag("--dry-run", flags.dry_run, "Show the steps without doing them");
  command.add_option("--deadline", flags.deadline_seconds, "Seconds for one write to the kernel")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0).description(""))
      ->capture_default_str();
  command
      .add_option("--vfs-deadline", flags.vfs_seconds,
                  "Seconds until virtual functions must have appeared")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0).description(""))
      ->capture_default_str();
}

void add_vgpu_create(CLI::App& vgpu, Context& context, Action& chosen) {
  auto flags = std::make_shared<VgpuFlags>();
  auto* command = vgpu.add_subcommand("create", "Create vGPUs; existing ones stay");
  command->add_option("type", flags->type, "The vGPU type, such as A10-4Q")->required();
  command->add_option("--gpu", flags->gpu, "On this GPU: index, PCI address or UUID")
      ->type_name("GPU");
  command->add_option("--count", flags->count, "How many")
      ->type_name("NUMBER")
      ->check(CLI::Range(1, 1024).description(""))
      ->capture_default_str();
  command->add_option("--uuid", flags->uuid, "UUID of the mediated device (default: random)")
      ->type_name("UUID");
  add_change_flags(*command, context, *flags);
  add_examples(*command,
               "  sudo gantry vgpu create A10-4Q --gpu 0 --count 2\n"
               "  sudo gantry vgpu create T4-8Q --gpu 0000:3b:00.0 --dry-run\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return create_vgpus(*flags, c); }; });
}

void add_vgpu_remove(CLI::App& vgpu, Context& context, Action& chosen) {
  auto flags = std::make_shared<VgpuFlags>();
  auto* command = vgpu.add_subcommand("remove", "Remove vGPUs that no virtual machine uses");
  command->add_option("vgpu", flags->ids, "UUID, or address of the virtual function");
  command->add_flag("--all", flags->all, "All vGPUs of the machine, or of --gpu");
  command->add_option("--gpu", flags->gpu, "With --all: only of this GPU")->type_name("GPU");
  add_change_flags(*command, context, *flags);
  add_examples(*command,
               "  sudo gantry vgpu remove 83b8f4f2-509f-482f-8c1e-e6bfe0fa1001\n"
               "  sudo gantry vgpu remove --all --gpu 0\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return remove_vgpus(*flags, c); }; });
}

void add_vgpu_apply(CLI::App& vgpu, Context& context, Action& chosen) {
  auto flags = std::make_shared<VgpuFlags>();
  auto* command = vgpu.add_subcommand("apply", "Apply a named set of vGPUs");
  command->add_option("-f,--config-file", flags->file, "Configuration of vgpu-device-manager")
      ->type_name("FILE")
      ->transform(absolute_path());
  command->add_option("-c,--selected-config", flags->set, "Name of the set in the file")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_flag("--restore", flags->restore,
                    "Create again what should exist: after a reboot or an interrupted change");
  add_change_flags(*command, context, *flags);
  add_examples(*command,
               "  sudo gantry vgpu apply -f vgpu.yaml -c small\n"
               "  gantry vgpu apply -f vgpu.yaml -c small --dry-run\n"
               "  sudo gantry vgpu apply --restore      # what gantry-vgpu.service does at boot\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return apply_set(*flags, c); }; });
}

void add_vgpu_assert(CLI::App& vgpu, Context& context, Action& chosen) {
  auto flags = std::make_shared<VgpuFlags>();
  auto* command =
      vgpu.add_subcommand("assert", "Check that a named set is applied (exit status 1 if not)");
  command->add_option("-f,--config-file", flags->file, "Configuration of vgpu-device-manager")
      ->type_name("FILE")
      ->transform(absolute_path())
      ->required();
  command->add_option("-c,--selected-config", flags->set, "Name of the set in the file")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_flag("-a,--valid-config", flags->valid_only,
                    "Check only that the file is valid and has the set");
  add_machine_options(*command, context);
  add_examples(*command, "  gantry vgpu assert -f vgpu.yaml -c small && echo applied\n");
  command->callback([=, &chosen] { chosen = [=](Context& c) { return assert_vgpus(*flags, c); }; });
}

}  // namespace

Result<int> apply_vgpus(const VgpuFlags& flags, Context& context) {
  if (flags.restore) {
    return change(flags, context, [](const sys::Host& host) -> Result<VgpuWork> {
      GANTRY_TRY(auto owners, owners_after_restore(host));
      return VgpuWork{.owners = std::move(owners),
                      .act = [&host](const auto& actions, const auto& options) {
                        return vgpu::restore(host, actions, options);
                      }};
    });
  }
  return change(flags, context, [&](const sys::Host& host) -> Result<VgpuWork> {
    GANTRY_TRY(const auto config, read_config(flags.file));
    GANTRY_TRY(const auto wanted, vgpu::select_set(config, flags.set, view_vgpus(host).gpus));
    return VgpuWork{.owners = owners_after_apply(wanted),
                    .act = [&host, wanted](const auto& actions, const auto& options) {
                      return vgpu::apply(host, wanted, actions, options);
                    }};
  });
}

Result<int> assert_vgpus(const VgpuFlags& flags, Context& context) {
  GANTRY_TRY(const auto config, read_config(flags.file));
  if (flags.valid_only) {
    GANTRY_CHECK(vgpu::find_set(config, flags.set));
    if (context.json) print_verdict("valid", true, context);
    return kOk;
  }
  GANTRY_TRY(const auto host, open_host(context));
  const auto view = view_vgpus(host);
  GANTRY_TRY(const auto wanted, vgpu::select_set(config, flags.set, view.gpus));
  const auto plan = vgpu::plan_counts(view.gpus, wanted, [] { return std::string("UUID"); });
  const bool applied = plan.ok() && plan->steps.empty() && !view.interrupted;
  if (context.json) {
    print_verdict("applied", applied, context);
    return applied ? kOk : kProblem;
  }
  if (applied) {
    if (!context.quiet) fmt::print(context.out, "The set {} is applied.\n", flags.set);
    return kOk;
  }
  if (!plan.ok()) return for_machine(host, Error(plan.error()));
  if (view.interrupted) {
    fmt::print(context.err, "The set {} is not applied: `gantry vgpu {}` was interrupted.\n",
               flags.set, view.interrupted->command);
    print_note("`sudo gantry vgpu apply --restore` completes it", context);
    return kProblem;
  }
  fmt::print(context.err, "The set {} is not applied: {} step{} missing.\n", flags.set,
             plan->steps.size(), plan->steps.size() == 1 ? " is" : "s are");
  print_note(fmt::format("`sudo gantry vgpu apply -f {} -c {}` applies it",
                         sys::shell_word(flags.file), sys::shell_word(flags.set)),
             context);
  return kProblem;
}

void add_vgpu_changes(CLI::App& vgpu, Context& context, Action& chosen) {
  add_vgpu_create(vgpu, context, chosen);
  add_vgpu_remove(vgpu, context, chosen);
  add_vgpu_apply(vgpu, context, chosen);
  add_vgpu_assert(vgpu, context, chosen);
}

}  // namespace gantry::cli
