// SPDX-License-Identifier: Apache-2.0
// Current measurements of GPUs and events from their driver, as plain values. src/gpu/nvml_child
// reads them; src/gpu/health and src/node/metrics use them. nullopt means that the card or driver
// does not provide the value, never zero.
#pragma once

#include "gpu/model/inventory.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gantry::model {

// The recovery action that the driver asks for, in NVML's numbers.
enum class RecoveryAction : std::uint8_t {
  None,
  GpuReset,
  NodeReboot,
  DrainP2p,
  DrainAndReset,
  RecoverImexDomain
};

struct ProcessReading {
  std::uint32_t pid = 0;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<int> utilization_percent;  // of the multiprocessors
  std::optional<int> gpu_instance;
  std::optional<int> compute_instance;
  std::string pod_uid;  // from its cgroup; "" when it is in no pod
  std::string container_id;
  bool operator==(const ProcessReading&) const = default;
};

// Ratios from 0 to 1 for the time since the previous reading, if the driver samples them (GPM).
struct ProfileReading {
  std::optional<double> graphics_active;
  std::optional<double> sm_active;
  std::optional<double> sm_occupancy;
  std::optional<double> tensor_active;
  std::optional<double> dram_active;
  std::optional<double> fp64_active;
  std::optional<double> fp32_active;
  std::optional<double> fp16_active;
  std::optional<double> pcie_sent_bytes_per_second;
  std::optional<double> pcie_received_bytes_per_second;
  bool operator==(const ProfileReading&) const = default;
};

struct InstanceReading {
  GpuUuid uuid;
  int gpu_instance = 0;
  int compute_instance = 0;
  std::optional<std::uint64_t> memory_total_bytes;
  std::optional<std::uint64_t> memory_used_bytes;
  std::optional<std::uint64_t> memory_free_bytes;
  std::optional<std::uint64_t> memory_reserved_bytes;
  ProfileReading profile;
  bool operator==(const InstanceReading&) const = default;
};

struct GpuReading {
  GpuUuid uuid;
  std::string lost;             // why it does not answer any more; "" when it does
  bool reset_required = false;  // NVML itself says so
  std::optional<RecoveryAction> recovery_action;
  std::optional<std::uint64_t> clock_reasons;  // NVML's bits: why clocks are lower than possible

  std::optional<std::uint64_t> memory_total_bytes;
  std::optional<std::uint64_t> memory_used_bytes;
  std::optional<std::uint64_t> memory_free_bytes;
  std::optional<std::uint64_t> memory_reserved_bytes;
  std::optional<int> temperature_celsius;
  std::optional<int> memory_temperature_celsius;
  std::optional<int> power_milliwatts;
  std::optional<int> power_limit_milliwatts;
  std::optional<std::uint64_t> energy_millijoules;  // since the driver was loaded
  std::optional<int> utilization_percent;
  std::optional<int> memory_utilization_percent;
  std::optional<int> encoder_percent;
  std::optional<int> decoder_percent;
  std::optional<int> duty_cycle_percent;  // mean of the samples of the last ten seconds
  std::optional<int> sm_clock_mhz;
  std::optional<int> memory_clock_mhz;

  std::optional<std::uint64_t> pcie_replays;
  std::optional<std::uint64_t> nvlink_bandwidth_total;  // as DCGM counts it: KiB, both directions
  std::optional<std::uint64_t> nvlink_crc_flit_errors;
  std::optional<std::uint64_t> nvlink_crc_data_errors;
  std::optional<std::uint64_t> nvlink_replays;
  std::optional<std::uint64_t> nvlink_recoveries;
  std::optional<std::uint64_t> ecc_corrected_volatile;
  std::optional<std::uint64_t> ecc_uncorrected_volatile;
  std::optional<std::uint64_t> ecc_corrected_aggregate;
  std::optional<std::uint64_t> ecc_uncorrected_aggregate;
  std::optional<std::uint64_t> retired_corrected;
  std::optional<std::uint64_t> retired_uncorrected;
  std::optional<std::uint64_t> retired_pending;
  std::optional<std::uint64_t> remapped_corrected;
  std::optional<std::uint64_t> remapped_uncorrected;
  std::optional<std::uint64_t> remap_pending;
  std::optional<std::uint64_t> remap_failure;
  std::optional<std::uint64_t> power_violation_ns;
  std::optional<std::uint64_t> thermal_violation_ns;
  std::optional<std::uint64_t> sync_boost_violation_ns;
  std::optional<std::uint64_t> board_limit_violation_ns;
  std::optional<std::uint64_t> low_utilization_violation_ns;
  std::optional<std::uint64_t> reliability_violation_ns;
  std::optional<int> vgpu_license;  // 1: licensed

  ProfileReading profile;
  std::vector<InstanceReading> instances;
  std::vector<ProcessReading> processes;
  bool operator==(const GpuReading&) const = default;
};

struct Readings {
  std::int64_t at_unix_ms = 0;
  std::vector<GpuReading> gpus;  // in NVML's order; one without handle has an empty UUID
  bool operator==(const Readings&) const = default;
};

enum class GpuEventKind : std::uint8_t {
  Xid,
  SingleBitEcc,
  DoubleBitEcc,
  MigChanged,
  SingleBitEccStorm,
  DramRetirement,
  DramRetirementFailure,
  NonFatalPoison,
  FatalPoison,
  GpuUnavailable,
  RecoveryActionChanged
};

struct GpuEvent {
  GpuEventKind kind = GpuEventKind::Xid;
  GpuUuid gpu;  // empty text: NVML did not say which
  std::optional<int> gpu_instance;
  std::optional<int> compute_instance;
  std::uint64_t data = 0;  // the XID
  std::int64_t at_unix_ms = 0;
  bool operator==(const GpuEvent&) const = default;
};

}  // namespace gantry::model
