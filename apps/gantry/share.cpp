// SPDX-License-Identifier: Apache-2.0
// gantry share: a part of a GPU, with limits that hold.
#include "base/core/printable.hpp"
#include "container/plan/device_selection.hpp"
#include "gantry/commands.hpp"
#include "gantry/share_commands.hpp"
#include "gpu/probe/snapshot.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace gantry::cli {
namespace {

constexpr std::uint64_t kGranule = 2U << 20U;  // in which the driver allocates

// `--memory "$LIMIT"` without a LIMIT must not be a share without limits.
std::string refuse_empty(const std::string& word) {
  return word.empty() ? "is empty; give a value, or leave the option out" : "";
}

CLI::Option* add_word(CLI::App& command, const char* flag, std::string& into, const char* help,
                      const char* type = "WORD") {
  return command.add_option(flag, into, help)
      ->type_name(type)
      ->check(CLI::Validator(refuse_empty, ""));
}

// It can be read, and cannot have been meant.
Status check_beyond(const ShareFlags& flags) {
  if (!flags.work_conserving || !flags.text.compute.empty() || !flags.text.weight.empty())
    return {};
  return Error(Errc::Invalid,
               "--work-conserving says what happens beyond a part of the time, and none was "
               "given; add it: --compute 30% --work-conserving");
}

// Less memory than the driver allocates at once is a number without its unit.
Status check_unit(const std::string& text) {
  if (text.empty() || text == "none") return {};
  GANTRY_TRY(const auto memory, policy::parse_memory_limit(text));
  if (memory.percent != 0 || memory.bytes >= kGranule) return {};
  return Error(Errc::Invalid,
               fmt::format("--memory {} is {} bytes, and the driver allocates 2 MiB at a time; "
                           "write more, with its unit: --memory 10GiB",
                           text, memory.bytes));
}

}  // namespace

void add_limit_flags(CLI::App& command, ShareFlags& flags) {
  auto& text = flags.text;
  add_word(command, "--memory", text.memory, "GPU memory: 10GiB, 50% of the card, or none", "SIZE");
  auto* compute = add_word(command, "--compute", text.compute, "GPU time: 30%, or none", "PERCENT");
  add_word(command, "--weight", text.weight,
           "GPU time by weight against others, 100 being the usual one", "N")
      ->excludes(compute);
  auto* hard = command.add_flag("--hard", flags.hard,
                                "Never more than --compute, even when the GPU would idle (usual)");
  command
      .add_flag("--work-conserving", flags.work_conserving,
                "Time that others leave may be used beyond --compute")
      ->excludes(hard);
  add_word(command, "--priority", text.priority,
           "Who gets what others leave: low, normal (usual), high");
  add_word(command, "--policy", text.on_violation,
           "A process past its limits or past the fence is: report (told; usual) or stop (killed)");
  add_word(command, "--context-memory", text.context_memory,
           "Memory of contexts and modules is: counted (usual) or free");
  add_word(command, "--unattached", text.unattached,
           "Where the fence cannot reach the keeper: refuse (cuInit fails; usual) or pass");
  command.add_flag("--overcommit", flags.overcommit, "Allow to promise more than the GPU has");
}

void add_backend_flags(CLI::App& command, ShareFlags& flags) {
  add_word(command, "--backend", flags.text.backend,
           "Who holds the limits: auto (usual), fence, mps, mig, time-slicing");
  command
      .add_option("--gpu", flags.gpus,
                  "Index or UUID of a GPU or MIG instance; several, with commas or again, for a "
                  "share of each (default: the GPU with most room)")
      ->type_name("GPU")
      ->delimiter(',')
      ->allow_extra_args(false);
}

policy::ShareText ShareFlags::words() const {
  auto said = text;
  if (hard) said.excess = "cap";
  if (work_conserving) said.excess = "work-conserving";
  return said;
}

Status check_new_share(const ShareFlags& flags) {
  GANTRY_CHECK(check_beyond(flags));
  GANTRY_CHECK(check_unit(flags.text.memory));
  auto text = flags.words();
  if (text.name.empty()) text.name = "run";
  GANTRY_CHECK(policy::parse_share(text));
  return {};
}

Status check_changes(const ShareFlags& flags) {
  if (flags.words() == policy::ShareText{})
    return Error(Errc::Invalid, "nothing to change: give --memory, --compute or another limit");
  GANTRY_CHECK(check_unit(flags.text.memory));
  policy::Share one;  // with a per cent: the one that is meant may have it
  one.time_policy.percent = 100;
  GANTRY_CHECK(policy::apply_changes(one, flags.words()));
  return {};
}

void fail_usage(const Status& words) {
  if (!words.ok()) throw CLI::ValidationError(printable_lines(words.error().text()));
}

namespace {

// `share ls` shows the beginning of a UUID, and so that is a name, too, where it is one GPU's.
std::string whole_uuid(const model::Inventory& machine, const std::string& id) {
  constexpr std::size_t kLeast = std::string_view("GPU-0000").size();
  if (id.size() < kLeast) return id;
  std::vector<std::string> found;
  const auto look = [&](const model::GpuUuid& uuid) {
    if (uuid.text.starts_with(id)) found.push_back(uuid.text);
  };
  for (const auto& gpu : machine.gpus) {
    look(gpu.uuid);
    for (const auto& instance : gpu.mig.instances) look(instance.uuid);
  }
  return found.size() == 1 ? found.front() : id;
}

}  // namespace

Result<policy::ShareText> resolve_share_text(const ShareFlags& flags,
                                             const model::Inventory& machine) {
  GANTRY_CHECK(check_beyond(flags));
  GANTRY_CHECK(check_unit(flags.text.memory));
  auto text = flags.words();
  for (const auto& id : flags.gpus) {
    GANTRY_TRY(const auto device, plan::select_one(machine, whole_uuid(machine, id)));
    text.gpus += fmt::format("{}{}", text.gpus.empty() ? "" : ",",
                             device.mig != nullptr ? device.mig->uuid.text : device.gpu->uuid.text);
  }
  return text;
}

Result<model::Inventory> read_machine(const sys::Host& host, probe::NvmlUse nvml) {
  GANTRY_TRY(auto machine, probe::snapshot(host, {.nvml = nvml}));
  if (machine.gpus.empty()) {
    return Error(Errc::NotFound,
                 fmt::format("there is no GPU on the machine {}; run `gantry doctor`",
                             host.is_live() ? "here" : host.root()));
  }
  return machine;
}

Result<model::Inventory> read_machine_for(const ShareFlags& flags, const sys::Host& host) {
  const auto& backend = flags.text.backend;
  const bool by_driver =
      backend == to_string(policy::Backend::Mps) || backend == to_string(policy::Backend::Mig);
  return read_machine(host, by_driver ? probe::NvmlUse::Use : probe::NvmlUse::ForMig);
}

Result<model::GpuUuid> any_gpu(const model::Inventory& machine) {
  for (const auto& gpu : machine.gpus) {
    if (gpu.mig.instances.empty()) return gpu.uuid;
  }
  return Error(Errc::NotFound,
               "every GPU here is in MIG mode: name an instance with --gpu MIG-UUID");
}

std::string format_limit(std::uint64_t bytes) {
  return bytes == UINT64_MAX ? "none" : policy::to_string(policy::MemoryLimit{.bytes = bytes});
}

void add_share(CLI::App& app, Context& context, Action& chosen) {
  auto* share = app.add_subcommand("share", "A part of a GPU, with limits that hold");
  share->require_subcommand(1);
  add_examples(*share,
               "  gantry share run --memory 10GiB --compute 30% -- python3 train.py\n"
               "  gantry share create blue --memory 20GiB    # then: podman run --device "
               "gantry.dev/share=blue ...\n"
               "  gantry share top\n"
               "  gantry share explain                       # what holds here, against whom\n");
  add_share_run(*share, context, chosen);
  add_share_create(*share, context, chosen);
  add_share_rm(*share, context, chosen);
  add_share_list(*share, context, chosen);
  add_share_top(*share, context, chosen);
  add_share_set(*share, context, chosen);
  add_share_explain(*share, context, chosen);
  add_share_serve(*share, context, chosen);
}

}  // namespace gantry::cli
