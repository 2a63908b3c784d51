// SPDX-License-Identifier: Apache-2.0
// gantry vgpu types, gantry vgpu list: the vGPUs of this machine.
#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/commands.hpp"
#include "gantry/vgpu_commands.hpp"
#include "sim/machine/vgpu_sysfs.hpp"
#include "vm/vgpu/live_actions.hpp"
#include "vm/vgpu/state.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::cli {
namespace {

Result<std::vector<const vgpu::VgpuGpu*>> shown_gpus(const VgpuView& view,
                                                     const std::string& name) {
  std::vector<const vgpu::VgpuGpu*> gpus;
  if (!name.empty()) {
    GANTRY_TRY(const auto* gpu, chosen_gpu(view.gpus, name));
    return std::vector{gpu};
  }
  for (const auto& gpu : view.gpus) gpus.push_back(&gpu);
  return gpus;
}

void tell_interrupted(const VgpuView& view, const Context& context) {
  if (!view.state_error.empty()) print_note(view.state_error, context);
  if (!view.interrupted) return;
  print_note(fmt::format("`gantry vgpu {}` was interrupted; `sudo gantry vgpu apply --restore` "
                         "completes it",
                         view.interrupted->command),
             context);
}

Result<int> list_vgpus(const VgpuFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  auto view = view_vgpus(host);
  GANTRY_TRY(const auto gpus, shown_gpus(view, flags.gpu));
  if (context.json) {
    fmt::print(context.out, "{}\n", vgpu_json(gpus, view));
    return kOk;
  }
  if (gpus.empty()) {
    fmt::print(context.out, "No NVIDIA GPU.\n");
    return kOk;
  }
  if (!flags.gpu.empty()) view.gpus = {*gpus.front()};
  fmt::print(context.out, "{}", vgpu_table(view, context.columns));
  tell_interrupted(view, context);
  return kOk;
}

Result<int> list_types(const VgpuFlags& flags, Context& context) {
  GANTRY_TRY(const auto host, open_host(context));
  const auto view = view_vgpus(host);
  GANTRY_TRY(const auto gpus, shown_gpus(view, flags.gpu));
  if (context.json) {
    fmt::print(context.out, "{}\n", vgpu_json(gpus, view));
    return kOk;
  }
  fmt::print(context.out, "{}", vgpu_types_table(gpus, context.columns));
  for (const auto* gpu : gpus) {
    if (gpu->framework == vgpu::Framework::VfsOff) {
      print_note(fmt::format("the types of {} are known when its virtual functions are enabled; "
                             "`gantry vgpu create` and `apply` do that",
                             gpu->label()),
                 context);
    } else if (gpu->silent) {
      print_note(fmt::format("{}: {}", gpu->label(), gpu->problem), context);
    } else if (!gpu->problem.empty()) {
      print_note(fmt::format("{} has no vGPUs: {}", gpu->label(), gpu->problem), context);
    }
  }
  return gpus.empty() ? kProblem : kOk;
}

}  // namespace

VgpuView view_vgpus(const sys::Host& host) {
  VgpuView view{.gpus = vgpu::read_host(host, vgpu::read_known_types(host))};
  auto journal = vgpu::read_journal(host);
  if (journal.ok()) {
    view.interrupted = *std::move(journal);
  } else if (journal.error().code() != Errc::Denied) {  // only root may read it
    view.state_error = journal.error().text();
  }
  return view;
}

Result<const vgpu::VgpuGpu*> chosen_gpu(const std::vector<vgpu::VgpuGpu>& gpus,
                                        const std::string& name) {
  if (gpus.empty()) return Error(Errc::NotFound, "this machine has no NVIDIA GPU");
  if (name.empty()) {
    if (gpus.size() == 1) return &gpus.front();
    return Error(Errc::Invalid, fmt::format("this machine has {} GPUs", gpus.size()))
        .advise("name one with --gpu INDEX; `gantry vgpu list` shows them");
  }
  if (const auto* gpu = vgpu::find_gpu(gpus, name)) return gpu;
  return Error(Errc::NotFound, fmt::format("there is no GPU {}", name))
      .advise("`gantry vgpu list` shows the GPUs with index and address");
}

vgpu::Actions vgpu_actions(const sys::Host& host, const VgpuFlags& flags) {
  const auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<long>(seconds * 1000));
  };
  if (!sim::has_vgpu_host(host.root()))
    return vgpu::live_actions(host, {.write_deadline = milliseconds(flags.deadline_seconds)});
  vgpu::Actions actions;
  vgpu::add_common_actions(host, actions);
  actions.write = [&host](std::string_view path, std::string_view text) {
    return sim::write_vgpu_sysfs(host.root(), path, text);
  };
  actions.enable_vfs = [&host](const model::PciAddress& gpu, unsigned count) {
    return sim::write_vgpu_sysfs(host.root(), vgpu::pci_directory(gpu) + "/sriov_numvfs",
                                 fmt::to_string(count));
  };
  actions.enable_mixed = [&host](const model::PciAddress& gpu) {
    return sim::allow_mixed_vgpus(host.root(), gpu);
  };
  return actions;
}

Error for_machine(const sys::Host& host, Error error) {
  const auto remedy = error.remedy();
  const auto sudo = remedy.find("sudo ");
  const bool ours = sudo == std::string::npos || remedy.substr(sudo + 5).starts_with("gantry ");
  if (host.is_live() || ours) return error;
  return Error(error.code(), error.cause()).advise("on that machine: " + remedy);
}

void add_vgpu(CLI::App& app, Context& context, Action& chosen) {
  auto flags = std::make_shared<VgpuFlags>();
  auto* command = app.add_subcommand("vgpu", "vGPUs for virtual machines: types, create, apply");
  command->require_subcommand(1);
  auto* list = command->add_subcommand("list", "Show GPUs and their vGPUs");
  add_machine_options(*list, context);
  list->add_option("--gpu", flags->gpu, "Only this GPU: index, PCI address or UUID")
      ->type_name("GPU");
  add_examples(*list,
               "  gantry vgpu list\n"
               "  gantry vgpu list --json | jq '.gpus[].vgpus[]'\n");
  list->callback([=, &chosen] { chosen = [=](Context& c) { return list_vgpus(*flags, c); }; });
  auto* types =
      command->add_subcommand("types", "Show the vGPU types of each GPU and how many fit");
  add_machine_options(*types, context);
  types->add_option("--gpu", flags->gpu, "Only this GPU: index, PCI address or UUID")
      ->type_name("GPU");
  add_examples(*types,
               "  gantry vgpu types --gpu 0\n"
               "  gantry vgpu types --json | jq '.gpus[0].types[] | select(.available > 0)'\n");
  types->callback([=, &chosen] { chosen = [=](Context& c) { return list_types(*flags, c); }; });
  add_vgpu_changes(*command, context, chosen);
}

}  // namespace gantry::cli
