// SPDX-License-Identifier: Apache-2.0
// Counters by nvmlDeviceGetFieldValues: one call for all of them.
#include "gpu/nvml/readings_internal.hpp"

#include <array>
#include <limits>
#include <optional>
#include <span>

namespace gantry::nvml {
namespace {

using Counter = std::optional<std::uint64_t> model::GpuReading::*;

struct Field {
  unsigned id;
  Counter member;
};

constexpr std::array kVital{
    Field{NVML_FI_DEV_ECC_SBE_VOL_TOTAL, &model::GpuReading::ecc_corrected_volatile},
    Field{NVML_FI_DEV_ECC_DBE_VOL_TOTAL, &model::GpuReading::ecc_uncorrected_volatile},
    Field{NVML_FI_DEV_ECC_SBE_AGG_TOTAL, &model::GpuReading::ecc_corrected_aggregate},
    Field{NVML_FI_DEV_ECC_DBE_AGG_TOTAL, &model::GpuReading::ecc_uncorrected_aggregate},
    Field{NVML_FI_DEV_RETIRED_PENDING, &model::GpuReading::retired_pending},
    Field{NVML_FI_DEV_REMAPPED_COR, &model::GpuReading::remapped_corrected},
    Field{NVML_FI_DEV_REMAPPED_UNC, &model::GpuReading::remapped_uncorrected},
    Field{NVML_FI_DEV_REMAPPED_PENDING, &model::GpuReading::remap_pending},
    Field{NVML_FI_DEV_REMAPPED_FAILURE, &model::GpuReading::remap_failure},
    Field{NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, &model::GpuReading::energy_millijoules},
};

constexpr std::array kFurther{
    Field{NVML_FI_DEV_RETIRED_SBE, &model::GpuReading::retired_corrected},
    Field{NVML_FI_DEV_RETIRED_DBE, &model::GpuReading::retired_uncorrected},
    Field{NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
          &model::GpuReading::nvlink_crc_flit_errors},
    Field{NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
          &model::GpuReading::nvlink_crc_data_errors},
    Field{NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, &model::GpuReading::nvlink_replays},
    Field{NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, &model::GpuReading::nvlink_recoveries},
    Field{NVML_FI_DEV_PERF_POLICY_POWER, &model::GpuReading::power_violation_ns},
    Field{NVML_FI_DEV_PERF_POLICY_THERMAL, &model::GpuReading::thermal_violation_ns},
    Field{NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, &model::GpuReading::sync_boost_violation_ns},
    Field{NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, &model::GpuReading::board_limit_violation_ns},
    Field{NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION,
          &model::GpuReading::low_utilization_violation_ns},
    Field{NVML_FI_DEV_PERF_POLICY_RELIABILITY, &model::GpuReading::reliability_violation_ns},
    Field{NVML_FI_DEV_PCIE_REPLAY_COUNTER, &model::GpuReading::pcie_replays},
};

std::optional<std::uint64_t> number_in(const nvmlFieldValue_t& field) {
  if (field.nvmlReturn != NVML_SUCCESS) return std::nullopt;
  const auto& value = field.value;
  switch (field.valueType) {
    case NVML_VALUE_TYPE_UNSIGNED_INT: return value.uiVal;
    case NVML_VALUE_TYPE_UNSIGNED_LONG: return value.ulVal;
    case NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: return value.ullVal;
    case NVML_VALUE_TYPE_UNSIGNED_SHORT: return value.usVal;
    case NVML_VALUE_TYPE_SIGNED_INT:
      return value.siVal < 0 ? std::nullopt : std::optional<std::uint64_t>(value.siVal);
    case NVML_VALUE_TYPE_SIGNED_LONG_LONG:
      return value.sllVal < 0 ? std::nullopt : std::optional<std::uint64_t>(value.sllVal);
    default: return std::nullopt;
  }
}

// Fields that are not plain counters; they follow the counters in the same call.
struct SpecialField {
  enum : std::size_t {
    Action,
    ResetStatus,
    VitalCount,
    MemoryTemperature = VitalCount,
    Sent,
    Received,
    Count
  };
};

void take_special(std::span<const nvmlFieldValue_t> fields, model::GpuReading& reading) {
  const auto action = number_in(fields[SpecialField::Action]);
  if (action && *action <= static_cast<unsigned>(model::RecoveryAction::RecoverImexDomain))
    reading.recovery_action = static_cast<model::RecoveryAction>(*action);
  if (number_in(fields[SpecialField::ResetStatus]) == 1) reading.reset_required = true;
  if (fields.size() <= SpecialField::VitalCount) return;
  const auto celsius = number_in(fields[SpecialField::MemoryTemperature]);
  if (celsius && *celsius < 1000) reading.memory_temperature_celsius = static_cast<int>(*celsius);
  const auto sent = number_in(fields[SpecialField::Sent]);
  const auto received = number_in(fields[SpecialField::Received]);
  if (sent && received) reading.nvlink_bandwidth_total = *sent + *received;
}

}  // namespace

void read_fields(DeviceQuery& query, nvml_child::ReadingDepth depth, model::GpuReading& reading) {
  constexpr unsigned kAllLinks = std::numeric_limits<unsigned>::max();
  std::array<nvmlFieldValue_t, kVital.size() + kFurther.size() + SpecialField::Count> fields{};
  std::array<Counter, kVital.size() + kFurther.size()> members{};
  std::size_t count = 0;
  const auto add = [&](std::span<const Field> list) {
    for (const auto& field : list) {
      members[count] = field.member;
      fields[count++].fieldId = field.id;
    }
  };
  add(kVital);
  if (depth == nvml_child::ReadingDepth::Full) add(kFurther);
  const auto counters = count;
  fields[count++].fieldId = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
  fields[count++].fieldId = NVML_FI_DEV_RESET_STATUS;
  if (depth == nvml_child::ReadingDepth::Full) {
    fields[count++].fieldId = NVML_FI_DEV_MEMORY_TEMP;
    fields[count].scopeId = kAllLinks;
    fields[count++].fieldId = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX;
    fields[count].scopeId = kAllLinks;
    fields[count++].fieldId = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX;
  }
  if (!GANTRY_QUERY(query, nvmlDeviceGetFieldValues, query.device(), static_cast<int>(count),
                    fields.data())) {
    return;
  }
  for (std::size_t i = 0; i < counters; ++i) reading.*members[i] = number_in(fields[i]);
  take_special(std::span(fields).subspan(counters, count - counters), reading);
}

}  // namespace gantry::nvml
