// SPDX-License-Identifier: Apache-2.0
// gantry share: a part of a GPU, with limits that hold.
#include "gantry/commands.hpp"
#include "gantry/share_commands.hpp"
#include "plan/select.hpp"
#include "probe/snapshot.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace gantry::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCudaFence = "libgantry-fence.so";
constexpr const char* kNvmlFence = "libgantry-fence-nvml.so";

}  // namespace

void add_limit_flags(CLI::App& command, ShareFlags& flags) {
  auto& text = flags.text;
  command.add_option("--memory", text.memory, "GPU memory: 10GiB, 50% of the card, or none")
      ->type_name("SIZE");
  auto* compute =
      command.add_option("--compute", text.compute, "GPU time: 30%, or none")->type_name("PERCENT");
  command
      .add_option("--weight", text.weight,
                  "GPU time by weight against others, 100 being the usual one")
      ->type_name("N")
      ->excludes(compute);
  auto* hard = command.add_flag("--hard", flags.hard,
                                "Never more than --compute, even when the GPU would idle (usual)");
  command
      .add_flag("--work-conserving", flags.work_conserving,
                "Time that others leave may be used beyond --compute")
      ->excludes(hard);
  command.add_option("--priority", text.priority, "Who gets what others leave: low, normal, high")
      ->type_name("WORD");
  command
      .add_option("--policy", text.on_violation,
                  "A process past its limits or past the fence is: report (told) or stop (killed)")
      ->type_name("WORD");
  command
      .add_option("--context-memory", text.context_memory,
                  "Memory of contexts and modules is: counted or free")
      ->type_name("WORD");
  command
      .add_option("--unattached", text.unattached,
                  "Where the fence cannot reach the keeper: refuse (cuInit fails) or pass")
      ->type_name("WORD");
  command
      .add_option("--backend", text.backend,
                  "Who holds the limits: auto, fence, mps, mig, time-slicing")
      ->type_name("WORD");
  command.add_flag("--overcommit", flags.overcommit, "Allow to promise more than the GPU has");
}

void add_gpu_flag(CLI::App& command, ShareFlags& flags) {
  command
      .add_option("--gpu", flags.gpus,
                  "Index or UUID of a GPU or MIG instance; several for a share of each (default: "
                  "the GPU with most room)")
      ->type_name("GPU")
      ->delimiter(',')
      ->allow_extra_args(false);
}

Result<share::ShareText> words_of(const ShareFlags& flags, const model::Inventory& machine) {
  auto text = flags.text;
  for (const auto& id : flags.gpus) {
    GANTRY_TRY(const auto device, plan::select_one(machine, id));
    text.gpus += fmt::format("{}{}", text.gpus.empty() ? "" : ",",
                             device.mig != nullptr ? device.mig->uuid.text : device.gpu->uuid.text);
  }
  if (flags.hard) text.excess = "cap";
  if (flags.work_conserving) text.excess = "work-conserving";
  return text;
}

Result<model::Inventory> machine_of(const sys::Host& host, probe::UseNvml nvml) {
  GANTRY_TRY(auto machine, probe::snapshot(host, {.nvml = nvml}));
  if (machine.gpus.empty()) {
    return Error(Errc::NotFound,
                 fmt::format("there is no GPU on the machine {}; run `gantry doctor`",
                             host.is_live() ? "here" : host.root()));
  }
  return machine;
}

Result<model::Inventory> machine_for(const ShareFlags& flags, const sys::Host& host) {
  const bool by_mps = flags.text.backend == to_string(share::Backend::Mps);
  return machine_of(host, by_mps ? probe::UseNvml::Use : probe::UseNvml::ForMig);
}

Result<model::GpuUuid> any_gpu(const model::Inventory& machine) {
  for (const auto& gpu : machine.gpus) {
    if (gpu.mig.instances.empty()) return gpu.uuid;
  }
  return Error(Errc::NotFound,
               "every GPU here is in MIG mode: name an instance with --gpu MIG-UUID");
}

std::vector<std::string> keeper_program() {
  std::error_code failed;
  const auto self = fs::read_symlink("/proc/self/exe", failed);
  return {failed ? "gantry" : self.string(), "share", "serve"};
}

Result<keeper::Client> running_keeper(const sys::Host& host) {
  auto client = keeper::Client::connect(host);
  if (!client.ok() && client.error().code() == Errc::NotFound) {
    return Error(Errc::NotFound,
                 "there are no shares here: no keeper runs; `gantry share run` and `gantry share "
                 "create` start it");
  }
  return client;
}

Result<FenceLibraries> find_fence() {
  std::vector<fs::path> places;
  if (const char* named = std::getenv("GANTRY_FENCE_LIBRARIES");
      named != nullptr && *named == '/') {
    places.emplace_back(named);
  } else {
    std::error_code failed;
    const auto beside = fs::read_symlink("/proc/self/exe", failed).parent_path();
    places = {(beside / "../lib/gantry").lexically_normal(),
              (beside / "../lib").lexically_normal()};
  }
  for (const auto& place : places) {
    std::error_code failed;
    if (fs::exists(place / kCudaFence, failed) && fs::exists(place / kNvmlFence, failed))
      return FenceLibraries{(place / kCudaFence).string(), (place / kNvmlFence).string()};
  }
  return Error(Errc::NotFound,
               fmt::format("the fence's libraries {} and {} are not in {}; reinstall gantry, or "
                           "name their directory with GANTRY_FENCE_LIBRARIES",
                           kCudaFence, kNvmlFence, places.front().string()));
}

std::string limit_word(std::uint64_t bytes) {
  return bytes == UINT64_MAX ? "none" : share::to_string(share::Memory{.bytes = bytes});
}

void add_share(CLI::App& app, Context& context, Action& chosen) {
  auto* share = app.add_subcommand("share", "A part of a GPU, with limits that hold");
  share->require_subcommand(1);
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
