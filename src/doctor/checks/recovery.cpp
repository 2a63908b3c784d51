// SPDX-License-Identifier: Apache-2.0
// GPUs that the driver has given up until somebody resets them.
#include "base/core/text.hpp"
#include "doctor/checks/areas_internal.hpp"
#include "doctor/engine/kernel_log.hpp"
#include "doctor/engine/offenders.hpp"
#include "doctor/engine/steps.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

enum class Recovery : std::uint8_t { None, DrainAndReset, Reset, Reboot };

// As the probe words NVML's "reset required" and its recovery action.
Recovery wish_of(const std::string& reason) {
  if (contains(reason, "asks for a reboot")) return Recovery::Reboot;
  if (contains(reason, "must be reset") || contains(reason, "asks for a reset")) {
    return Recovery::Reset;
  }
  if (contains(reason, "stop the work on this GPU")) return Recovery::DrainAndReset;
  return Recovery::None;
}

// Xid 154 tells each change: "... changed from 0x0 (None) to 0x1 (GPU Reset Required)".
Recovery wish_of_xid(std::string_view text) {
  const auto now = text.substr(std::min(text.size(), text.rfind(" to ")));
  if (contains(now, "Reboot")) return Recovery::Reboot;
  if (contains(now, "Drain")) return Recovery::DrainAndReset;
  return contains(now, "Reset") ? Recovery::Reset : Recovery::None;
}

struct Wish {
  Recovery recovery = Recovery::None;
  Evidence evidence;
};

// NVML's word counts; the log's last one where NVML has none.
Wish wish_for(const Facts& f, const model::Gpu& gpu) {
  Wish wish;
  for (const auto& reason : gpu.health.reasons) {
    const auto recovery = wish_of(reason);
    if (recovery > wish.recovery) {
      wish = {recovery, {fmt::format("NVML, GPU {}", gpu.index), reason}};
    }
  }
  if (wish.recovery != Recovery::None || !f.kernel_log()) return wish;
  for (const auto& xid : find_xids(*f.kernel_log())) {
    if (xid.number != 154 || !gpu.pci.sysfs().starts_with(to_lower(xid.pci))) continue;
    wish = {wish_of_xid(xid.text), {"kernel log", fmt::format("Xid 154, {}", xid.text)}};
  }
  return wish;
}

Finding judge_reset(const Facts& f) {
  const auto& gpus = f.inventory().gpus;
  if (gpus.empty()) return skip("the driver shows no GPU");
  Tally tally;
  auto worst = Recovery::None;
  for (const auto& gpu : gpus) {
    auto wish = wish_for(f, gpu);
    if (wish.recovery == Recovery::None) continue;
    worst = std::max(worst, wish.recovery);
    tally.found(name_of(gpu), std::move(wish.evidence), fmt::to_string(gpu.index));
  }
  if (!tally.any_bad()) {
    return ok("no GPU waits for a reset",
              {{"NVML", fmt::format("no recovery asked for by {} GPU(s)", gpus.size())}});
  }
  const auto reset = tally.command("sudo nvidia-smi --gpu-reset -i @");
  switch (worst) {
    case Recovery::Reboot:
      return fail(fmt::format("only a reboot helps: {}", tally.who()), tally.bad)
          .advise("sudo reboot");
    case Recovery::Reset:
      return fail(fmt::format("must be reset before it is used again: {}", tally.who()), tally.bad)
          .advise(reset + "  # its programs ended");
    default:
      return warn(fmt::format("should be reset when its programs have ended: {}", tally.who()),
                  tally.bad)
          .advise(reset);
  }
}

// A reset ends every program on the GPU: not while there is one.
Steps fix_reset(const Facts& f) {
  Steps steps;
  for (const auto& gpu : f.inventory().gpus) {
    const auto recovery = wish_for(f, gpu).recovery;
    if (recovery == Recovery::None || recovery == Recovery::Reboot || !gpu.processes.empty()) {
      continue;
    }
    steps.emplace_back(RunProgram{{"nvidia-smi", "--gpu-reset", "-i", fmt::to_string(gpu.index)}});
  }
  return steps;
}

constexpr Check kRecoveryChecks[] = {
    {.id = "gpu.reset",
     .reference = "H29",
     .area = Area::Gpu,
     .fix_class = FixClass::OnRequest,
     .title = "no GPU waits for a reset",
     .reads = "NVML (reset required, recovery action), /dev/kmsg (Xid 154)",
     .cause = "After an error that only a reset clears (Xid 48, 62, 64, 95, 119, 140) the driver "
              "lets no new program on the GPU: NVML says \"GPU requires reset\".",
     .remedy = "sudo nvidia-smi --gpu-reset -i INDEX",
     .judge = judge_reset,
     .fix = fix_reset,
     .by_hand = "programs are on the GPU and a reset would end them, or only a reboot helps"},
};

}  // namespace

std::span<const Check> recovery_checks() {
  return kRecoveryChecks;
}

}  // namespace gantry::doctor
