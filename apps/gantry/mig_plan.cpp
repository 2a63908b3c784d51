// SPDX-License-Identifier: Apache-2.0
// What `gantry mig` sees of the machine, and which layout each GPU is to have.
#include "base/core/text.hpp"
#include "gantry/mig_commands.hpp"
#include "gantry/mig_owner.hpp"
#include "gpu/mig/config_file.hpp"
#include "gpu/mig/describe.hpp"
#include "gpu/mig/solve.hpp"
#include "node/owner_lease/local_usage.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

namespace gantry::cli {
namespace {

using mig::MigGpu;
using mig_change::Layout;
using mig_change::LayoutInstance;

constexpr std::size_t kMaxConfigBytes = std::size_t{512} << 10;

Layout layout_from(const mig::LayoutPlan& plan) {
  Layout layout{.enabled = plan.mode == model::MigMode::Enabled};
  for (const auto& kept : plan.keep) {
    LayoutInstance one{.profile = kept.profile, .place = kept.place};
    for (const auto& compute : kept.keep) one.compute.push_back({compute.profile, compute.place});
    for (const auto& compute : kept.create) one.compute.push_back({compute.profile, compute.place});
    layout.instances.push_back(std::move(one));
  }
  for (const auto& created : plan.create) {
    LayoutInstance one{.profile = created.profile, .place = created.place};
    for (const auto& compute : created.compute)
      one.compute.push_back({compute.profile, compute.place});
    layout.instances.push_back(std::move(one));
  }
  std::sort(layout.instances.begin(), layout.instances.end(),
            [](const auto& a, const auto& b) { return a.place < b.place; });
  return layout;
}

bool is_capable(const MigGpu& gpu) {
  return gpu.current != model::MigMode::Unsupported && gpu.current != model::MigMode::Unknown;
}

const MigGpu* find_gpu(const std::vector<MigGpu>& gpus, std::string_view name) {
  const auto index = parse_u64(name);
  const auto address = index ? std::nullopt : model::PciAddress::parse(name);
  for (const auto& gpu : gpus) {
    const bool named = index     ? static_cast<std::uint64_t>(gpu.index) == *index
                       : address ? gpu.pci == *address
                                 : !gpu.uuid.text.empty() && gpu.uuid.text == name;
    if (named) return &gpu;
  }
  return nullptr;
}

Error no_mig(const MigGpu& gpu) {
  return {Errc::Unsupported, fmt::format("{} ({}) has no MIG", mig_label(gpu), gpu.name)};
}

Result<std::string> read_config_from_input() {
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() <= kMaxConfigBytes) {
    const auto got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0) return Error::sys(errno, "read standard input");
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return Error(Errc::TooLarge, "the configuration on standard input is too large");
}

std::vector<MigGpu> capable_gpus(const std::vector<MigGpu>& gpus) {
  std::vector<MigGpu> capable;
  std::copy_if(gpus.begin(), gpus.end(), std::back_inserter(capable), is_capable);
  return capable;
}

Result<std::vector<MigTarget>> targets_of_file(const MigFlags& flags, const MigView& view) {
  GANTRY_TRY(const auto config, read_mig_config(flags.file));
  GANTRY_TRY(auto targets, mig_targets(config, flags.set, view));
  if (flags.gpus.empty()) return targets;
  GANTRY_TRY(const auto named, chosen_mig_gpus(view.gpus, flags.gpus, true));
  std::erase_if(targets, [&](const MigTarget& target) {
    return std::none_of(named.begin(), named.end(),
                        [&](const MigGpu& gpu) { return gpu.pci == target.gpu.pci; });
  });
  return targets;
}

std::vector<std::string> names_of_processes(const sys::Host& host, const MigView& view,
                                            const MigGpu& gpu, unsigned gpu_instance,
                                            unsigned compute_instance) {
  std::vector<std::string> names;
  for (const auto& process : view.processes) {
    if (process.gpu == gpu.pci && process.gpu_instance == gpu_instance &&
        process.compute_instance == compute_instance)
      names.push_back(name_process(host, process.pid));
  }
  return names;
}

// NVML's list may have the same processes.
void add_unknown(std::vector<std::string> more, std::vector<std::string>& users) {
  for (auto& name : more) {
    const auto pid = name.substr(0, name.find(" ("));
    const auto is_known = [&](const std::string& user) {
      return user == pid || user.starts_with(pid + " ");
    };
    if (std::none_of(users.begin(), users.end(), is_known)) users.push_back(std::move(name));
  }
}

}  // namespace

// The file belongs to the caller, not to the machine below --root.
Result<mig::MigConfigFile> read_mig_config(const std::string& file) {
  if (file == "-") {
    GANTRY_TRY(const auto text, read_config_from_input());
    return mig::parse_config(text, "standard input");
  }
  GANTRY_TRY(const auto here, sys::Host::at("/"));
  GANTRY_TRY(const auto text, here.read(file, kMaxConfigBytes).in("reading the configuration"));
  return mig::parse_config(text, file);
}

std::string mig_label(const MigGpu& gpu) {
  return fmt::format("GPU {} ({})", gpu.index, gpu.pci.sysfs());
}

const mig_change::GpuState* MigView::state_of(const model::PciAddress& gpu) const {
  const auto found = std::find_if(stored.states.begin(), stored.states.end(),
                                  [&](const auto& state) { return state.gpu == gpu; });
  return found == stored.states.end() ? nullptr : &*found;
}

mig_nvml::SessionOptions mig_session_options(const MigFlags& flags) {
  const std::chrono::milliseconds deadline(static_cast<long>(flags.deadline_seconds * 1000));
  return {.start_deadline = deadline, .read_deadline = deadline, .change_deadline = deadline};
}

Result<MigView> view_mig(const sys::Host& host, mig_change::LiveDriver& driver) {
  GANTRY_TRY(auto machine, driver.read());
  return MigView{.gpus = std::move(machine.gpus),
                 .processes = std::move(machine.processes),
                 .stored = mig_change::read_states(host)};
}

void find_mig_users(const sys::Host& host, const std::vector<MigGpu>& gpus, MigView& view) {
  for (const auto& gpu : gpus) {
    for (const auto& instance : gpu.instances) {
      for (const auto& compute : instance.compute) {
        const ownership::ChangedParts parts{.going = {compute.uuid.text},
                                            .nodes = mig_nodes(host, gpu, instance.id, compute.id)};
        auto usage = owner_lease::local_usage(host, gpu.pci, {}, parts);
        auto& users = view.users[compute.uuid.text];
        if (!usage.ok()) continue;
        users = std::move(usage->holders);
        add_unknown(names_of_processes(host, view, gpu, instance.id, compute.id), *users);
      }
    }
  }
}

Result<std::vector<MigGpu>> chosen_mig_gpus(const std::vector<MigGpu>& gpus,
                                            const std::vector<std::string>& names,
                                            bool all_by_default) {
  const auto capable = capable_gpus(gpus);
  if (names.empty() && capable.empty())
    return Error(Errc::Unsupported, "this machine has no GPU with MIG");
  if (names.empty() && (all_by_default || capable.size() == 1)) return capable;
  if (names.empty())
    return Error(Errc::Invalid, fmt::format("this machine has {} GPUs with MIG", capable.size()))
        .advise("name them with --gpu INDEX or --gpu all; `gantry mig list` shows them");
  std::vector<MigGpu> chosen;
  for (const auto& name : names) {
    if (name == "all") return capable;
    const auto* gpu = find_gpu(gpus, name);
    if (gpu == nullptr)
      return Error(Errc::NotFound, fmt::format("there is no GPU {}", name))
          .advise("`gantry mig list` shows the GPUs with index and address");
    if (!is_capable(*gpu)) return no_mig(*gpu);
    const auto again = [&](const MigGpu& one) { return one.pci == gpu->pci; };
    if (std::none_of(chosen.begin(), chosen.end(), again)) chosen.push_back(*gpu);
  }
  return chosen;
}

Result<std::vector<MigTarget>> mig_targets(const mig::MigConfigFile& config, const std::string& set,
                                           const MigView& view) {
  GANTRY_TRY(const auto selection, mig::select_config(config, set, view.gpus));
  std::vector<MigTarget> targets;
  for (const auto& one : selection.layouts)
    targets.push_back({.gpu = view.gpus.at(one.gpu), .request = one.request});
  return targets;
}

Result<std::vector<MigTarget>> mig_targets(const MigFlags& flags, const MigView& view) {
  if (flags.file.empty() == flags.layout.empty())
    return Error(Errc::Invalid, flags.file.empty()
                                    ? "name the instances, or a configuration with -f and -c"
                                    : "name the instances or a configuration, not both")
        .advise("as in: gantry mig apply --gpu 0 3g.71gb,2g.35gb,1g.18gb");
  if (!flags.file.empty()) return targets_of_file(flags, view);
  GANTRY_TRY(const auto request, mig::parse_layout(flags.layout));
  GANTRY_TRY(const auto gpus, chosen_mig_gpus(view.gpus, flags.gpus, false));
  std::vector<MigTarget> targets;
  for (const auto& gpu : gpus) targets.push_back({.gpu = gpu, .request = request});
  return targets;
}

Result<Layout> plan_mig(const MigGpu& gpu, const mig::LayoutRequest& request,
                        const std::vector<model::GpuUuid>& held) {
  // The driver tells the profiles when the mode is on; then it is planned again.
  if (gpu.profiles.empty() && request.enabled) return Layout{.enabled = true};
  auto decision = mig::solve(gpu, request, held);
  if (std::holds_alternative<mig::LayoutRefusal>(decision) && !held.empty())
    decision = mig::solve(gpu, request);  // the lease asks about them
  if (const auto* plan = std::get_if<mig::LayoutPlan>(&decision)) return layout_from(*plan);
  return std::get<mig::LayoutRefusal>(decision).to_error(gpu);
}

std::string picture_of_change(const MigGpu& gpu, const mig::LayoutRequest& request,
                              std::size_t columns) {
  if (gpu.profiles.empty()) return "";
  const auto decision = mig::solve_quickly(gpu, request);
  const auto* plan = std::get_if<mig::LayoutPlan>(&decision);
  constexpr std::size_t kColumns = 100;  // where there is no terminal
  return plan == nullptr ? "" : mig::describe_plan(gpu, *plan, columns == 0 ? kColumns : columns);
}

bool is_applied(const MigTarget& target, const MigView& view, bool mode_only) {
  const auto& gpu = target.gpu;
  const auto mode = target.request.enabled ? model::MigMode::Enabled : model::MigMode::Disabled;
  if (gpu.current != mode || gpu.pending != mode) return false;
  if (mode_only) return true;
  const auto* state = view.state_of(gpu.pci);
  if (state != nullptr && state->change) return false;
  const auto layout = plan_mig(gpu, target.request, {});
  return layout.ok() && mig_change::steps_to(gpu, *layout).empty();
}

}  // namespace gantry::cli
