// SPDX-License-Identifier: Apache-2.0
// nvmlDeviceGetFieldValues: many numbers in one call, each with its own result.

#include "sim/libnvidia-ml/nvml_internal.hpp"

#include <time.h>

using namespace gantry::sim::nvml;

namespace {

struct Answer {
  nvmlFieldValue_t& field;

  nvmlReturn_t ull(unsigned long long value) const {
    field.valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    field.value.ullVal = value;
    return NVML_SUCCESS;
  }
  nvmlReturn_t number(unsigned int value) const {
    field.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    field.value.uiVal = value;
    return NVML_SUCCESS;
  }
  nvmlReturn_t number_if_set(int32_t value) const {
    return value == GANTRY_SIM_UNSET ? NVML_ERROR_NOT_SUPPORTED
                                     : number(static_cast<unsigned int>(value));
  }
  nvmlReturn_t difference(int32_t from, int32_t value) const {
    if (from == GANTRY_SIM_UNSET || value == GANTRY_SIM_UNSET) return NVML_ERROR_NOT_SUPPORTED;
    field.valueType = NVML_VALUE_TYPE_SIGNED_INT;
    field.value.siVal = from - value;
    return NVML_SUCCESS;
  }
};

struct FieldQuery {
  const Target& target;
  const gantry_sim_gpu_state& now;
  unsigned int id, scope;

  const gantry_sim_gpu& card() const { return *target.card; }
  bool ecc() const { return card().ecc_supported != 0; }
  bool at_least(uint32_t architecture) const { return card().nvml_architecture >= architecture; }
  bool between(unsigned int first, unsigned int last) const { return id >= first && id <= last; }
};

nvmlReturn_t ecc_field(const FieldQuery& query, const Answer& answer) {
  if (!query.ecc()) return NVML_ERROR_NOT_SUPPORTED;
  switch (query.id) {
    case NVML_FI_DEV_ECC_CURRENT:
    case NVML_FI_DEV_ECC_PENDING: return answer.ull(1);
    case NVML_FI_DEV_ECC_SBE_VOL_TOTAL:
    case NVML_FI_DEV_ECC_SBE_VOL_DEV: return answer.ull(query.now.ecc_corrected_volatile);
    case NVML_FI_DEV_ECC_DBE_VOL_TOTAL:
    case NVML_FI_DEV_ECC_DBE_VOL_DEV: return answer.ull(query.now.ecc_uncorrected_volatile);
    case NVML_FI_DEV_ECC_SBE_AGG_TOTAL:
    case NVML_FI_DEV_ECC_SBE_AGG_DEV: return answer.ull(query.now.ecc_corrected_aggregate);
    case NVML_FI_DEV_ECC_DBE_AGG_TOTAL:
    case NVML_FI_DEV_ECC_DBE_AGG_DEV: return answer.ull(query.now.ecc_uncorrected_aggregate);
    default: return answer.ull(0);
  }
}

nvmlReturn_t remap_field(const FieldQuery& query, const Answer& answer) {
  if (!query.ecc() || !query.at_least(NVML_DEVICE_ARCH_AMPERE)) return NVML_ERROR_NOT_SUPPORTED;
  switch (query.id) {
    case NVML_FI_DEV_REMAPPED_COR: return answer.ull(query.now.remapped_correctable);
    case NVML_FI_DEV_REMAPPED_UNC: return answer.ull(query.now.remapped_uncorrectable);
    case NVML_FI_DEV_REMAPPED_PENDING: return answer.ull(query.now.remap_pending);
    default: return answer.ull(query.now.remap_failure);
  }
}

bool is_nvlink_speed(const FieldQuery& query, unsigned int& link) {
  if (query.between(NVML_FI_DEV_NVLINK_SPEED_MBPS_L0, NVML_FI_DEV_NVLINK_SPEED_MBPS_L5)) {
    link = query.id - NVML_FI_DEV_NVLINK_SPEED_MBPS_L0;
    return true;
  }
  if (query.between(NVML_FI_DEV_NVLINK_SPEED_MBPS_L6, NVML_FI_DEV_NVLINK_SPEED_MBPS_L11)) {
    link = query.id - NVML_FI_DEV_NVLINK_SPEED_MBPS_L6 + 6;
    return true;
  }
  if (query.id == NVML_FI_DEV_NVLINK_GET_SPEED) {
    link = query.scope;
    return true;
  }
  return false;
}

// Counters of errors and of traffic: a simulated link carries nothing and loses nothing.
bool is_nvlink_counter(const FieldQuery& query) {
  return query.between(NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0,
                       NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL) ||
         query.between(NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6,
                       NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L11) ||
         query.between(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
                       NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX) ||
         query.between(NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L0,
                       NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL) ||
         query.between(NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, NVML_FI_DEV_NVLINK_ERROR_DL_CRC);
}

unsigned int switch_links(const gantry_sim_gpu& card) {
  unsigned int count = 0;
  for (uint32_t i = 0; i < card.nvlink_count; ++i) {
    if (card.nvlink[i].remote_type == NVML_NVLINK_DEVICE_TYPE_SWITCH && nvlink_active(card, i))
      ++count;
  }
  return count;
}

nvmlReturn_t nvlink_field(const FieldQuery& query, const Answer& answer) {
  if (query.id == NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT)
    return answer.number(switch_links(query.card()));
  if (query.card().nvlink_count == 0) return NVML_ERROR_NOT_SUPPORTED;
  unsigned int link = 0;
  if (is_nvlink_speed(query, link)) {
    if (!nvlink_active(query.card(), link)) return NVML_ERROR_NOT_SUPPORTED;
    return answer.number(nvlink_mbps(query.card()));
  }
  switch (query.id) {
    case NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON: return answer.number(nvlink_mbps(query.card()));
    case NVML_FI_DEV_NVLINK_LINK_COUNT: return answer.number(query.card().nvlink_count);
    case NVML_FI_DEV_NVLINK_GET_VERSION: return answer.number(nvlink_version(query.card()));
    case NVML_FI_DEV_NVLINK_GET_STATE:
      if (query.scope >= query.card().nvlink_count) return NVML_ERROR_INVALID_ARGUMENT;
      return answer.number(nvlink_active(query.card(), query.scope) ? 1 : 0);
    case NVML_FI_DEV_NVLINK_GET_POWER_STATE: return answer.number(0);
    default: return is_nvlink_counter(query) ? answer.ull(0) : NVML_ERROR_NOT_SUPPORTED;
  }
}

nvmlReturn_t power_field(const FieldQuery& query, const Answer& answer) {
  const auto& card = query.card();
  switch (query.id) {
    case NVML_FI_DEV_POWER_AVERAGE: return answer.number_if_set(query.now.power_average_mw);
    case NVML_FI_DEV_POWER_INSTANT: return answer.number_if_set(query.now.power_mw);
    case NVML_FI_DEV_POWER_MIN_LIMIT: return answer.number_if_set(card.power_min_mw);
    case NVML_FI_DEV_POWER_MAX_LIMIT: return answer.number_if_set(card.power_max_mw);
    case NVML_FI_DEV_POWER_DEFAULT_LIMIT:
    case NVML_FI_DEV_POWER_CURRENT_LIMIT:
    case NVML_FI_DEV_POWER_REQUESTED_LIMIT: return answer.number_if_set(card.power_limit_mw);
    default: break;
  }
  unsigned long long millijoules = 0;
  if (!energy_of(query.target, millijoules)) return NVML_ERROR_NOT_SUPPORTED;
  return answer.ull(millijoules);
}

nvmlReturn_t temperature_field(const FieldQuery& query, const Answer& answer) {
  const auto& card = query.card();
  if (query.id == NVML_FI_DEV_MEMORY_TEMP)
    return answer.number_if_set(query.now.memory_temperature);
  if (!query.at_least(NVML_DEVICE_ARCH_ADA)) return NVML_ERROR_NOT_SUPPORTED;
  switch (query.id) {  // degrees left, counted from the highest operating temperature
    case NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT:
      return answer.difference(card.temperature_max, card.temperature_shutdown);
    case NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT:
      return answer.difference(card.temperature_max, card.temperature_slowdown);
    default: return answer.difference(card.temperature_max, card.temperature_max);
  }
}

nvmlReturn_t other_field(const FieldQuery& query, const Answer& answer) {
  switch (query.id) {
    case NVML_FI_DEV_PCIE_REPLAY_COUNTER:
    case NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER:
    case NVML_FI_DEV_PCIE_OUTBOUND_ATOMICS_MASK:
    case NVML_FI_DEV_PCIE_INBOUND_ATOMICS_MASK: return answer.number(0);
    case NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED:
      return answer.number(
          query.card().mig_capable != 0 && query.at_least(NVML_DEVICE_ARCH_HOPPER) ? 1 : 0);
    case NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE:
      return answer.number(query.card().mig_capable != 0 ? 1 : 0);
    case NVML_FI_DEV_RESET_STATUS: return answer.number(query.now.reset_required);
    case NVML_FI_DEV_DRAIN_AND_RESET_STATUS:
      return answer.number(
          query.now.recovery_action == NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET ? 1 : 0);
    case NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: return answer.number(query.now.recovery_action);
    default: return NVML_ERROR_NOT_SUPPORTED;
  }
}

bool is_retired_page(const FieldQuery& query) {
  return query.between(NVML_FI_DEV_RETIRED_SBE, NVML_FI_DEV_RETIRED_PENDING) ||
         query.between(NVML_FI_DEV_RETIRED_PENDING_SBE, NVML_FI_DEV_RETIRED_PENDING_DBE);
}

bool is_nvlink(const FieldQuery& query) {
  return query.between(NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0,
                       NVML_FI_DEV_NVLINK_BANDWIDTH_C1_TOTAL) ||
         query.between(NVML_FI_DEV_NVLINK_SPEED_MBPS_L0, NVML_FI_DEV_NVLINK_LINK_COUNT) ||
         query.between(NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6,
                       NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX) ||
         query.between(NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID, NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD);
}

nvmlReturn_t answer_field(const FieldQuery& query, const Answer& answer) {
  if (query.between(NVML_FI_DEV_ECC_SBE_VOL_L1, NVML_FI_DEV_ECC_DBE_AGG_CBU) &&
      query.at_least(NVML_DEVICE_ARCH_TURING)) {
    return NVML_ERROR_NOT_SUPPORTED;
  }
  if (query.between(NVML_FI_DEV_ECC_CURRENT, NVML_FI_DEV_ECC_DBE_AGG_CBU))
    return ecc_field(query, answer);
  if (is_retired_page(query)) {
    return query.ecc() && !query.at_least(NVML_DEVICE_ARCH_AMPERE) ? answer.ull(0)
                                                                   : NVML_ERROR_NOT_SUPPORTED;
  }
  if (is_nvlink(query)) return nvlink_field(query, answer);
  if (query.between(NVML_FI_DEV_PERF_POLICY_POWER, NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS))
    return answer.ull(0);
  if (query.between(NVML_FI_DEV_REMAPPED_COR, NVML_FI_DEV_REMAPPED_FAILURE))
    return remap_field(query, answer);
  if (query.id == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION ||
      query.between(NVML_FI_DEV_POWER_AVERAGE, NVML_FI_DEV_POWER_REQUESTED_LIMIT)) {
    return power_field(query, answer);
  }
  if (query.id == NVML_FI_DEV_MEMORY_TEMP ||
      query.between(NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT,
                    NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT)) {
    return temperature_field(query, answer);
  }
  if (query.id == NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER ||
      query.between(NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS, NVML_FI_DEV_PCIE_COUNT_LANE_ERROR) ||
      query.between(NVML_FI_DEV_PCIE_COUNT_TX_BYTES, NVML_FI_DEV_PCIE_COUNT_RX_BYTES)) {
    return query.at_least(NVML_DEVICE_ARCH_AMPERE) ? answer.number(0) : NVML_ERROR_NOT_SUPPORTED;
  }
  if (query.between(NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
                    NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN)) {
    return query.at_least(NVML_DEVICE_ARCH_AMPERE) ? answer.ull(0) : NVML_ERROR_NOT_SUPPORTED;
  }
  return other_field(query, answer);
}

// A driver rejects field numbers that are newer than it.
unsigned int newest_field(uint32_t branch) {
  constexpr struct {
    uint32_t branch;
    unsigned int newest;
  } kKnown[] = {{580, 302}, {570, 274}, {560, 250}, {550, 200}, {535, 199}, {525, 184},
                {510, 169}, {470, 160}, {450, 147}, {418, 91},  {410, 83},  {384, 81}};
  for (const auto& row : kKnown) {
    if (branch >= row.branch) return row.newest;
  }
  return 0;
}

}  // namespace

GANTRY_EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count,
                                                    nvmlFieldValue_t* values) {
  GANTRY_ENTER_GPU(nvmlDeviceGetFieldValues, device);
  if (values == nullptr || count <= 0) return NVML_ERROR_INVALID_ARGUMENT;
  const auto now = gpu_now(target.gpu);
  const auto stamp = static_cast<long long>(wall_us());
  for (int i = 0; i < count; ++i) {
    auto& field = values[i];
    field.timestamp = stamp;
    field.latencyUsec = 0;
    field.valueType = NVML_VALUE_TYPE_DOUBLE;
    field.value.ullVal = 0;
    const FieldQuery query{target, now, field.fieldId, field.scopeId};
    const bool known = field.fieldId != 0 && field.fieldId <= newest_field(session().branch);
    field.nvmlReturn = known ? answer_field(query, Answer{field}) : NVML_ERROR_INVALID_ARGUMENT;
  }
  return NVML_SUCCESS;
}

GANTRY_EXPORT nvmlReturn_t nvmlDeviceClearFieldValues(nvmlDevice_t device, int count,
                                                      nvmlFieldValue_t* values) {
  GANTRY_ENTER_GPU(nvmlDeviceClearFieldValues, device);
  if (values == nullptr || count <= 0) return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < count; ++i) values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
  return NVML_SUCCESS;
}
