// SPDX-License-Identifier: Apache-2.0
// gantry share: gives programs and containers a part of a GPU, with enforced limits.
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

constexpr std::uint64_t kGranule = 2U << 20U;  // the driver allocates in this unit

// `--memory "$LIMIT"` with LIMIT unset must not create a share without limits.
std::string refuse_empty(const std::string& word) {
  return word.empty() ? "is empty; give a value or leave the option out" : "";
}

CLI::Option* add_word(CLI::App& command, const char* flag, std::string& into, const char* help,
                      const char* type = "WORD") {
  return command.add_option(flag, into, help)
      ->type_name(type)
      ->check(CLI::Validator(refuse_empty, ""));
}

// Rejects a combination that parses but makes no sense.
Status check_beyond(const ShareFlags& flags) {
  if (!flags.work_conserving || !flags.text.compute.empty() || !flags.text.weight.empty())
    return {};
  return Error(Errc::Invalid,
               "--work-conserving needs --compute or --weight; for example: --compute 30% "
               "--work-conserving");
}

// Less memory than one allocation unit of the driver is probably a number without its unit.
Status check_unit(const std::string& text) {
  if (text.empty() || text == "none") return {};
  GANTRY_TRY(const auto memory, policy::parse_memory_limit(text));
  if (memory.percent != 0 || memory.bytes >= kGranule) return {};
  return Error(Errc::Invalid,
               fmt::format("--memory {} is {} bytes, but the driver allocates in units of 2 MiB; "
                           "give a larger value with a unit: --memory 10GiB",
                           text, memory.bytes));
}

}  // namespace

void add_limit_flags(CLI::App& command, ShareFlags& flags) {
  auto& text = flags.text;
  add_word(command, "--memory", text.memory, "GPU memory: 10GiB, 50% (of the GPU's memory) or none",
           "SIZE");
  auto* compute = add_word(command, "--compute", text.compute, "GPU time: 30% or none", "PERCENT");
  add_word(
      command, "--weight", text.weight,
      "GPU time in proportion to the weights of other shares (a share without a weight has 100)",
      "N")
      ->excludes(compute);
  auto* hard = command.add_flag("--hard", flags.hard,
                                "Never use more than --compute, even if the GPU is idle (default)");
  command
      .add_flag("--work-conserving", flags.work_conserving,
                "Use more than --compute while other shares leave GPU time unused")
      ->excludes(hard);
  add_word(command, "--priority", text.priority,
           "Order in which shares get unused GPU time: low, normal (default) or high");
  add_word(command, "--policy", text.on_violation,
           "What happens to a process that exceeds its limits or bypasses the fence: report "
           "(default) or stop (kill it)");
  add_word(command, "--context-memory", text.context_memory,
           "Memory of contexts and modules: counted (default) or free");
  add_word(command, "--unattached", text.unattached,
           "If the fence cannot reach the share daemon: refuse (cuInit fails; default) or pass "
           "(run without limits)");
  command.add_flag("--overcommit", flags.overcommit,
                   "Allow the shares together to have more than the GPU has");
}

void add_backend_flags(CLI::App& command, ShareFlags& flags) {
  add_word(command, "--backend", flags.text.backend,
           "Backend that enforces the limits: auto (default), fence, mps, mig or time-slicing");
  command
      .add_option("--gpu", flags.gpus,
                  "Index or UUID of a GPU or MIG instance; for a share of several, separate them "
                  "with commas or repeat the option (default: the GPU with the most room)")
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
  GANTRY_TRY(const auto changes, policy::parse_changes(flags.words()));
  if (changes == policy::ShareChanges{})
    return Error(Errc::Invalid, "nothing to change; give --memory, --compute or another limit");
  GANTRY_CHECK(check_unit(flags.text.memory));
  policy::Share one;  // has a percentage, because the share to change may have one
  one.time_policy.percent = 100;
  GANTRY_CHECK(policy::apply_changes(one, changes));
  return {};
}

void fail_usage(const Status& words) {
  if (!words.ok()) throw CLI::ValidationError(printable_lines(words.error().text()));
}

namespace {

// `share ls` shows the beginning of a UUID. Accept that too if only one GPU's UUID begins so.
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
                 fmt::format("there is no GPU on {}; run `gantry doctor`",
                             host.is_live() ? "this machine" : "the machine at " + host.root()));
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
               "every GPU of this machine is in MIG mode; name an instance with --gpu MIG-UUID");
}

void print_if_unlimited(const policy::Share& share, std::string_view command,
                        const Context& context) {
  const bool limited = share.memory || share.time_limited;
  if (limited || share.backend != policy::Backend::Fence) return;
  fmt::print(context.err,
             "gantry share {}: note: the share {} has no limit, so it may use all memory and all "
             "time of its GPU; limit it with --memory 10GiB or --compute 30%, now or later with "
             "`gantry share set`\n",
             command, share.name);
}

std::string format_limit(std::uint64_t bytes) {
  return bytes == UINT64_MAX ? "none" : policy::to_string(policy::MemoryLimit{.bytes = bytes});
}

void add_share(CLI::App& app, Context& context, Action& chosen) {
  auto* share = app.add_subcommand(
      "share", "Give programs and containers a part of a GPU, with enforced limits");
  share->require_subcommand(1);
  add_examples(
      *share,
      "  gantry share run --memory 10GiB --compute 30% -- python3 train.py\n"
      "  gantry share create blue --memory 20GiB    # then: podman run --device "
      "gantry.dev/share=blue ...\n"
      "  gantry share top\n"
      "  gantry share explain                       # which limits are enforced here, and how\n");
  add_share_run(*share, context, chosen);
  add_share_create(*share, context, chosen);
  add_share_rm(*share, context, chosen);
  add_share_list(*share, context, chosen);
  add_share_top(*share, context, chosen);
  add_share_set(*share, context, chosen);
  add_share_explain(*share, context, chosen);
  add_share_serve(*share, context, chosen);
  add_share_watch(*share, context, chosen);
}

}  // namespace gantry::cli
