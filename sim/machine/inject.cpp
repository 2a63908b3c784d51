// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/inject.hpp"

#include "sim/machine/fault_names.hpp"
#include "sim/machine/inject_internal.hpp"
#include "sim/machine/mig.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace gantry::sim {
namespace {

enum class EventType : std::uint32_t { Xid = 0, SingleBit = 1, DoubleBit = 2, MigChange = 3 };

// nvmlDeviceGpuRecoveryAction_t
constexpr std::uint32_t kReset = 1, kReboot = 2, kDrainAndReset = 4;

constexpr std::uint32_t kHopper = 9;  // nvmlDeviceArchitecture_t

// Clocks event reasons
constexpr std::uint64_t kHardwareSlowdown = 0x8, kSoftwareThermal = 0x20, kHardwareThermal = 0x40;

void add_event(gantry_sim_state& state, std::uint32_t gpu, EventType type, std::uint64_t data) {
  const auto number = ++state.event_sequence;
  state.event[number % GANTRY_SIM_MAX_EVENTS] = {.sequence = number,
                                                 .gpu = gpu,
                                                 .type = static_cast<std::uint32_t>(type),
                                                 .data = data,
                                                 .gi_id = -1,
                                                 .ci_id = -1};
}

Result<StateFile> open_for(const std::string& root, std::uint32_t gpu) {
  GANTRY_TRY(StateFile file, StateFile::open(root));
  if (gpu < file.machine().gpu_count) return file;
  return Error(Errc::NotFound, fmt::format("{} has {} GPUs, numbered from 0; GPU {} does not exist",
                                           file.machine().name, file.machine().gpu_count, gpu));
}

Status need_ecc(const gantry_sim_machine& machine, std::uint32_t gpu) {
  if (machine.gpu[gpu].ecc_supported != 0) return {};
  return Error(Errc::Unsupported,
               fmt::format("GPU {} ({}) has no ECC memory", gpu, machine.gpu[gpu].name));
}

void count_uncorrected(gantry_sim_gpu_state& gpu, std::uint64_t count) {
  gpu.ecc_uncorrected_volatile += count;
  gpu.ecc_uncorrected_aggregate += count;
}

void count_corrected(gantry_sim_gpu_state& gpu, std::uint64_t count) {
  gpu.ecc_corrected_volatile += count;
  gpu.ecc_corrected_aggregate += count;
}

void need_reset(gantry_sim_gpu_state& gpu, std::uint32_t action) {
  gpu.reset_required = 1;
  gpu.recovery_action = action;
}

void apply_xid(gantry_sim_gpu_state& gpu, std::uint32_t xid) {
  switch (xid) {
    case 48: count_uncorrected(gpu, 1); return need_reset(gpu, kReset);
    case 61:
    case 62:
    case 119:
    case 120:
    case 140: return need_reset(gpu, kReset);
    case 63:
      gpu.remapped_uncorrectable += 1;
      gpu.remap_pending = 1;
      return;
    case 64:
      gpu.remap_failure = 1;
      gpu.recovery_action = kDrainAndReset;
      return;
    case 74:
    case 154: gpu.recovery_action = kReset; return;
    case 79:
      gpu.lost = 1;
      gpu.recovery_action = kReboot;
      return;
    case 92: return count_corrected(gpu, 1000);
    case 94:
      return count_uncorrected(gpu, 1);  // contained: the program dies, the card keeps working
    case 95: count_uncorrected(gpu, 1); return need_reset(gpu, kDrainAndReset);
    default: return;  // the program's fault
  }
}

void copy_ecc(gantry_sim_gpu_state& to, const gantry_sim_gpu_state& from) {
  to.ecc_corrected_volatile = from.ecc_corrected_volatile;
  to.ecc_uncorrected_volatile = from.ecc_uncorrected_volatile;
  to.ecc_corrected_aggregate = from.ecc_corrected_aggregate;
  to.ecc_uncorrected_aggregate = from.ecc_uncorrected_aggregate;
  to.remapped_correctable = from.remapped_correctable;
  to.remapped_uncorrectable = from.remapped_uncorrectable;
  to.remap_pending = from.remap_pending;
  to.remap_failure = from.remap_failure;
  to.reset_required = from.reset_required;
  to.recovery_action = from.recovery_action;
}

void copy_mig(gantry_sim_gpu_state& to, const gantry_sim_gpu_state& from) {
  to.mig_current = from.mig_current;
  to.mig_pending = from.mig_pending;
  to.mig_count = from.mig_count;
  std::copy(std::begin(from.mig), std::end(from.mig), std::begin(to.mig));
}

// What the end of the kernel module leaves of MIG: no instances; the mode only on Ampere, which has
// it in the InfoROM, and with a pending change of it.
void stop_mig(const gantry_sim_gpu& card, gantry_sim_gpu_state& state) {
  clear_mig_instances(state);
  if (card.nvml_architecture >= kHopper) state.mig_pending = 0;
  state.mig_current = state.mig_pending;
}

// A new kernel module knows nothing of what nvidia-smi set before.
void copy_settings(gantry_sim_gpu_state& to, const gantry_sim_gpu_state& from) {
  to.persistence = from.persistence;
  to.compute_mode = from.compute_mode;
  to.power_limit_mw = from.power_limit_mw;
  to.graphics_lock_min_mhz = from.graphics_lock_min_mhz;
  to.graphics_lock_max_mhz = from.graphics_lock_max_mhz;
  to.memory_lock_min_mhz = from.memory_lock_min_mhz;
  to.memory_lock_max_mhz = from.memory_lock_max_mhz;
  to.draining = from.draining;
}

void cure(gantry_sim_gpu_state& to, const gantry_sim_gpu_state& from, ClearScope what) {
  switch (what) {
    case ClearScope::Everything: to = from; return;
    case ClearScope::Lost:
      to.lost = from.lost;
      to.recovery_action = from.recovery_action;
      return;
    case ClearScope::Ecc: return copy_ecc(to, from);
    case ClearScope::Temperature:
      to.temperature = from.temperature;
      to.clocks_event_reasons = from.clocks_event_reasons;
      return;
    case ClearScope::Mig: return copy_mig(to, from);
    case ClearScope::Driver: return copy_settings(to, from);
    case ClearScope::Removed:  // files alone
    case ClearScope::Faults: return;
  }
}

// How often the functions were called that a fault of this name counts over all processes.
std::uint64_t calls_so_far(const gantry_sim_state& state, const std::string& function) {
  if (const auto number = mig_function(function)) return state.mig_calls[*number];
  if (function != "mig") return 0;
  return std::accumulate(std::begin(state.mig_calls), std::end(state.mig_calls), std::uint64_t{0});
}

// Restores the tree's files of one GPU, after its state was restored.
Status cure_files(StateFile& file, std::uint32_t gpu, ClearScope what) {
  if (what == ClearScope::Everything || what == ClearScope::Removed)
    GANTRY_CHECK(restore_gpu(file, gpu));
  if (what == ClearScope::Everything || what == ClearScope::Lost) {
    GANTRY_CHECK(set_config_space(file, gpu, ConfigSpace::Readable));
  }
  if (what == ClearScope::Everything || what == ClearScope::Lost || what == ClearScope::Ecc) {
    GANTRY_CHECK(remove_xid_lines(file, gpu));
  }
  if (what == ClearScope::Everything || what == ClearScope::Mig)
    GANTRY_CHECK(set_mig_capabilities(file, gpu));
  return {};
}

}  // namespace

Status inject_xid(const std::string& root, std::uint32_t gpu, std::uint32_t xid) {
  GANTRY_TRY(StateFile file, open_for(root, gpu));
  auto& state = file.state();
  apply_xid(state.gpu[gpu], xid);
  add_event(state, gpu, EventType::Xid, xid);
  if (xid == 48) add_event(state, gpu, EventType::DoubleBit, 0);
  GANTRY_CHECK(log_xid(file, gpu, xid));
  if (xid == 79) GANTRY_CHECK(set_config_space(file, gpu, ConfigSpace::AllOnes));
  file.commit();
  return {};
}

Status inject_lost(const std::string& root, std::uint32_t gpu) {
  return inject_xid(root, gpu, 79);
}

Status inject_remove(const std::string& root, std::uint32_t gpu) {
  GANTRY_TRY(const StateFile file, open_for(root, gpu));
  return hide_gpu(file, gpu);
}

Status inject_ecc(const std::string& root, std::uint32_t gpu, const EccErrors& errors) {
  GANTRY_TRY(StateFile file, open_for(root, gpu));
  GANTRY_CHECK(need_ecc(file.machine(), gpu));
  auto& state = file.state();
  count_corrected(state.gpu[gpu], errors.corrected);
  count_uncorrected(state.gpu[gpu], errors.uncorrected);
  if (errors.corrected > 0) add_event(state, gpu, EventType::SingleBit, 0);
  if (errors.uncorrected > 0) add_event(state, gpu, EventType::DoubleBit, 0);
  file.commit();
  return {};
}

Status inject_temperature(const std::string& root, std::uint32_t gpu, std::int32_t celsius) {
  GANTRY_TRY(StateFile file, open_for(root, gpu));
  const auto& card = file.machine().gpu[gpu];
  auto& now = file.state().gpu[gpu];
  now.temperature = celsius;
  now.clocks_event_reasons = file.baseline().gpu[gpu].clocks_event_reasons;
  if (card.temperature_max != GANTRY_SIM_UNSET && celsius >= card.temperature_max) {
    now.clocks_event_reasons |= kSoftwareThermal;
  }
  if (card.temperature_slowdown != GANTRY_SIM_UNSET && celsius >= card.temperature_slowdown) {
    now.clocks_event_reasons |= kHardwareSlowdown | kHardwareThermal;
  }
  file.commit();
  return {};
}

Status inject_mig(const std::string& root, std::uint32_t gpu,
                  const std::optional<std::vector<MigRequest>>& layout) {
  GANTRY_TRY(StateFile file, open_for(root, gpu));
  const auto& card = file.machine().gpu[gpu];
  if (card.mig_capable == 0) {
    return Error(Errc::Unsupported,
                 fmt::format("GPU {} ({}) cannot be split into MIG instances", gpu, card.name));
  }
  auto& now = file.state().gpu[gpu];
  clear_mig_instances(now);
  now.mig_current = now.mig_pending = layout ? 1 : 0;
  const auto major = driver_major(file.machine().driver_version);
  if (layout) {
    for (const auto& request : *layout) GANTRY_CHECK(add_mig_instance(card, now, request, major));
  }
  add_event(file.state(), gpu, EventType::MigChange, 0);
  GANTRY_CHECK(set_mig_capabilities(file, gpu));
  file.commit();
  return {};
}

Status inject_unload(const std::string& root) {
  GANTRY_TRY(StateFile file, StateFile::open(root));
  GANTRY_CHECK(hide_driver(file.host()));
  auto& state = file.state();
  for (std::uint32_t i = 0; state.driver_unloaded == 0 && i < file.machine().gpu_count; ++i)
    stop_mig(file.machine().gpu[i], state.gpu[i]);
  state.driver_unloaded = 1;
  file.commit();
  return {};
}

Status inject_load(const std::string& root) {
  return clear(root, ClearScope::Driver, std::nullopt);
}

Status inject_reboot(const std::string& root) {
  GANTRY_CHECK(inject_unload(root));
  GANTRY_CHECK(inject_load(root));
  GANTRY_TRY(const sys::Host host, sys::Host::at(root));
  return renew_boot_id(host);
}

Status inject_fault(const std::string& root, const Fault& fault) {
  GANTRY_TRY(StateFile file, StateFile::open(root));
  GANTRY_CHECK(check_fault_name(root, fault.function));
  if (fault.action != GANTRY_SIM_FAULT_ONLY && !mig_function(fault.function) &&
      fault.function != "mig") {
    return Error(Errc::Invalid,
                 fmt::format("{} changes no MIG instances, so it cannot also lose a GPU or destroy "
                             "instances; name a function that does, or mig for all of them",
                             fault.function));
  }
  auto& state = file.state();
  state.fault_count = std::min<std::uint32_t>(state.fault_count, GANTRY_SIM_MAX_FAULTS);
  auto* end = state.fault + state.fault_count;
  auto* slot = std::find_if(state.fault, end,
                            [&](const auto& old) { return fault.function == old.function; });
  if (slot == end) {
    if (state.fault_count == GANTRY_SIM_MAX_FAULTS) {
      return Error(
          Errc::Busy,
          fmt::format("there are {} faults already; `gantry sim inject clear fault` removes them",
                      GANTRY_SIM_MAX_FAULTS));
    }
    ++state.fault_count;
  }
  *slot = {};
  std::memcpy(slot->function, fault.function.c_str(), fault.function.size() + 1);
  slot->result = fault.result;
  slot->delay_ms = fault.delay_ms;
  slot->every = fault.every;
  slot->action = fault.action;
  slot->call = fault.call == 0 ? 0 : calls_so_far(state, fault.function) + fault.call;
  file.commit();
  return {};
}

Status clear(const std::string& root, ClearScope what, std::optional<std::uint32_t> gpu) {
  GANTRY_TRY(StateFile file, open_for(root, gpu.value_or(0)));
  auto& state = file.state();
  const bool everything = what == ClearScope::Everything && !gpu;
  if (everything || what == ClearScope::Driver) {
    if (file.baseline().driver_unloaded == 0) GANTRY_CHECK(restore_driver(file.host()));
    state.driver_unloaded = file.baseline().driver_unloaded;
    // The layout may have changed while the driver was unloaded.
    for (std::uint32_t i = 0; i < file.machine().gpu_count; ++i)
      GANTRY_CHECK(set_mig_capabilities(file, i));
  }
  if (everything || what == ClearScope::Faults) state.fault_count = 0;
  for (std::uint32_t i = 0; i < file.machine().gpu_count; ++i) {
    if (gpu && *gpu != i) continue;
    cure(state.gpu[i], file.baseline().gpu[i], what);
    GANTRY_CHECK(cure_files(file, i, what));
  }
  file.commit();
  return {};
}

}  // namespace gantry::sim
