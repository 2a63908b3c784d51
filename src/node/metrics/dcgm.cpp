// SPDX-License-Identifier: Apache-2.0
// The metric names and labels of dcgm-exporter, from NVML only. As in dcgm-exporter, a divided card
// is shown as its instances; an instance shows the card's value if it has none of its own.
#include "node/metrics/pages_internal.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::metrics {
namespace {

struct Source {
  std::string labels;
  const model::GpuReading* card = nullptr;
  const model::InstanceReading* instance = nullptr;
  bool divided = false;         // the card has instances; this may be one without readings
  std::optional<PodUsage> pod;  // if the card is shared: only this pod's use
  unsigned last_xid = 0;

  const model::ProfileReading& profile() const {
    return instance != nullptr ? instance->profile : card->profile;
  }
};

using Value = std::optional<double>;
using Get = Value (*)(const Source&);

struct DcgmMetric {
  MetricInfo metric;
  Get get = nullptr;
};

template <class T>
Value number(const std::optional<T>& value, double scale = 1) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value) * scale;
}

Value mib(const std::optional<std::uint64_t>& bytes) {
  if (!bytes) return std::nullopt;
  return static_cast<double>(*bytes >> 20U);
}

#define OF_CARD(member) [](const Source& s) { return number(s.card->member); }
#define OF_PROFILE(member) [](const Source& s) { return number(s.profile().member); }
// A value of the instance itself; never replaced by the card's value.
#define OF_MEMORY(member)                                      \
  [](const Source& s) -> Value {                               \
    if (s.instance != nullptr) return mib(s.instance->member); \
    return s.divided ? std::nullopt : mib(s.card->member);     \
  }

Value gpu_util(const Source& s) {
  if (s.divided) return std::nullopt;
  return s.pod ? number(s.pod->percent) : number(s.card->utilization_percent);
}

Value memory_used(const Source& s) {
  if (s.pod) return mib(s.pod->memory_bytes);
  if (s.instance != nullptr) return mib(s.instance->memory_used_bytes);
  return s.divided ? std::nullopt : mib(s.card->memory_used_bytes);
}

constexpr std::array kRows{
    DcgmMetric{{"DCGM_FI_DEV_SM_CLOCK", kGauge, "SM clock frequency (in MHz)."},
               OF_CARD(sm_clock_mhz)},
    DcgmMetric{{"DCGM_FI_DEV_MEM_CLOCK", kGauge, "Memory clock frequency (in MHz)."},
               OF_CARD(memory_clock_mhz)},
    DcgmMetric{{"DCGM_FI_DEV_MEMORY_TEMP", kGauge, "Memory temperature (in C)."},
               OF_CARD(memory_temperature_celsius)},
    DcgmMetric{{"DCGM_FI_DEV_GPU_TEMP", kGauge, "GPU temperature (in C)."},
               OF_CARD(temperature_celsius)},
    DcgmMetric{{"DCGM_FI_DEV_POWER_USAGE", kGauge, "Power draw (in W)."},
               [](const Source& s) { return number(s.card->power_milliwatts, 1e-3); }},
    DcgmMetric{{"DCGM_FI_DEV_POWER_MGMT_LIMIT", kGauge, "Power limit in force (in W)."},
               [](const Source& s) { return number(s.card->power_limit_milliwatts, 1e-3); }},
    DcgmMetric{{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", kCounter,
                "Energy since the driver was loaded (in mJ)."},
               OF_CARD(energy_millijoules)},
    DcgmMetric{{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", kCounter, "PCIe retries."},
               OF_CARD(pcie_replays)},
    DcgmMetric{{"DCGM_FI_DEV_GPU_UTIL", kGauge, "GPU utilization (in %)."}, gpu_util},
    DcgmMetric{{"DCGM_FI_DEV_MEM_COPY_UTIL", kGauge, "Memory utilization (in %)."},
               OF_CARD(memory_utilization_percent)},
    DcgmMetric{{"DCGM_FI_DEV_ENC_UTIL", kGauge, "Encoder utilization (in %)."},
               OF_CARD(encoder_percent)},
    DcgmMetric{{"DCGM_FI_DEV_DEC_UTIL", kGauge, "Decoder utilization (in %)."},
               OF_CARD(decoder_percent)},
    DcgmMetric{
        {"DCGM_FI_DEV_XID_ERRORS", kGauge, "Number of the last XID error, 0 if there was none."},
        [](const Source& s) -> Value { return s.last_xid; }},
    DcgmMetric{{"DCGM_FI_DEV_FB_FREE", kGauge, "Frame buffer memory free (in MiB)."},
               OF_MEMORY(memory_free_bytes)},
    DcgmMetric{{"DCGM_FI_DEV_FB_USED", kGauge, "Frame buffer memory used (in MiB)."}, memory_used},
    DcgmMetric{{"DCGM_FI_DEV_FB_RESERVED", kGauge, "Frame buffer memory reserved (in MiB)."},
               OF_MEMORY(memory_reserved_bytes)},
    DcgmMetric{{"DCGM_FI_DEV_FB_TOTAL", kGauge, "Total frame buffer memory (in MiB)."},
               OF_MEMORY(memory_total_bytes)},
    DcgmMetric{{"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", kCounter,
                "Data over all NVLinks, both directions (in KiB)."},
               OF_CARD(nvlink_bandwidth_total)},
    DcgmMetric{{"DCGM_FI_DEV_VGPU_LICENSE_STATUS", kGauge, "vGPU license status."},
               OF_CARD(vgpu_license)},
    DcgmMetric{{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", kCounter,
                "Rows remapped for uncorrectable errors."},
               OF_CARD(remapped_uncorrected)},
    DcgmMetric{{"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", kCounter,
                "Rows remapped for correctable errors."},
               OF_CARD(remapped_corrected)},
    DcgmMetric{{"DCGM_FI_DEV_ROW_REMAP_FAILURE", kGauge, "Whether remapping of rows has failed."},
               OF_CARD(remap_failure)},
    DcgmMetric{
        {"DCGM_FI_DEV_ROW_REMAP_PENDING", kGauge, "Whether a remapped row waits for a reset."},
        OF_CARD(remap_pending)},
    DcgmMetric{
        {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", kCounter, "Corrected errors since the last reset."},
        OF_CARD(ecc_corrected_volatile)},
    DcgmMetric{
        {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", kCounter, "Uncorrected errors since the last reset."},
        OF_CARD(ecc_uncorrected_volatile)},
    DcgmMetric{{"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", kCounter, "Corrected errors in the card's life."},
               OF_CARD(ecc_corrected_aggregate)},
    DcgmMetric{
        {"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", kCounter, "Uncorrected errors in the card's life."},
        OF_CARD(ecc_uncorrected_aggregate)},
    DcgmMetric{{"DCGM_FI_DEV_RETIRED_SBE", kCounter, "Pages retired for corrected errors."},
               OF_CARD(retired_corrected)},
    DcgmMetric{{"DCGM_FI_DEV_RETIRED_DBE", kCounter, "Pages retired for uncorrected errors."},
               OF_CARD(retired_uncorrected)},
    DcgmMetric{{"DCGM_FI_DEV_RETIRED_PENDING", kCounter, "Pages that wait to be retired."},
               OF_CARD(retired_pending)},
    DcgmMetric{{"DCGM_FI_DEV_POWER_VIOLATION", kCounter, "Time throttled for power (in ns)."},
               OF_CARD(power_violation_ns)},
    DcgmMetric{{"DCGM_FI_DEV_THERMAL_VIOLATION", kCounter, "Time throttled for heat (in ns)."},
               OF_CARD(thermal_violation_ns)},
    DcgmMetric{
        {"DCGM_FI_DEV_SYNC_BOOST_VIOLATION", kCounter, "Time throttled by sync boost (in ns)."},
        OF_CARD(sync_boost_violation_ns)},
    DcgmMetric{
        {"DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", kCounter, "Time throttled by board limit (in ns)."},
        OF_CARD(board_limit_violation_ns)},
    DcgmMetric{
        {"DCGM_FI_DEV_LOW_UTIL_VIOLATION", kCounter, "Time throttled for low utilization (in ns)."},
        OF_CARD(low_utilization_violation_ns)},
    DcgmMetric{
        {"DCGM_FI_DEV_RELIABILITY_VIOLATION", kCounter, "Time throttled for reliability (in ns)."},
        OF_CARD(reliability_violation_ns)},
    DcgmMetric{{"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", kCounter,
                "NVLink flow-control CRC errors."},
               OF_CARD(nvlink_crc_flit_errors)},
    DcgmMetric{
        {"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", kCounter, "NVLink data CRC errors."},
        OF_CARD(nvlink_crc_data_errors)},
    DcgmMetric{{"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", kCounter, "NVLink retries."},
               OF_CARD(nvlink_replays)},
    DcgmMetric{
        {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", kCounter, "NVLink recovery errors."},
        OF_CARD(nvlink_recoveries)},
    DcgmMetric{
        {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", kGauge, "Ratio of time the graphics engine is active."},
        OF_PROFILE(graphics_active)},
    DcgmMetric{{"DCGM_FI_PROF_SM_ACTIVE", kGauge, "Ratio of cycles an SM has at least one warp."},
               OF_PROFILE(sm_active)},
    DcgmMetric{{"DCGM_FI_PROF_SM_OCCUPANCY", kGauge, "Ratio of warps resident on an SM."},
               OF_PROFILE(sm_occupancy)},
    DcgmMetric{
        {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", kGauge, "Ratio of cycles the tensor pipe is active."},
        OF_PROFILE(tensor_active)},
    DcgmMetric{
        {"DCGM_FI_PROF_DRAM_ACTIVE", kGauge, "Ratio of cycles the memory interface is active."},
        OF_PROFILE(dram_active)},
    DcgmMetric{
        {"DCGM_FI_PROF_PIPE_FP64_ACTIVE", kGauge, "Ratio of cycles the fp64 pipe is active."},
        OF_PROFILE(fp64_active)},
    DcgmMetric{
        {"DCGM_FI_PROF_PIPE_FP32_ACTIVE", kGauge, "Ratio of cycles the fp32 pipe is active."},
        OF_PROFILE(fp32_active)},
    DcgmMetric{
        {"DCGM_FI_PROF_PIPE_FP16_ACTIVE", kGauge, "Ratio of cycles the fp16 pipe is active."},
        OF_PROFILE(fp16_active)},
    DcgmMetric{{"DCGM_FI_PROF_PCIE_TX_BYTES", kGauge, "Bytes sent over PCIe per second."},
               OF_PROFILE(pcie_sent_bytes_per_second)},
    DcgmMetric{{"DCGM_FI_PROF_PCIE_RX_BYTES", kGauge, "Bytes received over PCIe per second."},
               OF_PROFILE(pcie_received_bytes_per_second)},
};

constexpr MetricInfo kXidCount{"DCGM_EXP_XID_ERRORS_COUNT", kGauge,
                               "XID errors by number since the agent started."};

std::string card_labels(const model::Gpu& gpu) {
  std::string labels;
  add_label(labels, "gpu", fmt::format_int(gpu.index).c_str());
  add_label(labels, "UUID", gpu.uuid.text);
  add_label(labels, "pci_bus_id",
            fmt::format("{:08X}:{:02X}:{:02X}.{:X}", gpu.pci.domain, gpu.pci.bus, gpu.pci.device,
                        gpu.pci.function));
  add_label(labels, "device",
            gpu.minor ? fmt::format("nvidia{}", *gpu.minor) : fmt::format("nvidia{}", gpu.index));
  add_label(labels, "modelName", gpu.name);
  return labels;
}

void add_dcgm_pod(std::string& labels, const model::DeviceAllocation& holder) {
  add_label(labels, "container", holder.container);
  add_label(labels, "namespace", holder.pod.name_space);
  add_label(labels, "pod", holder.pod.name);
  if (!holder.pod.uid.empty()) add_label(labels, "pod_uid", holder.pod.uid);
}

class Sources {
 public:
  Sources(const Snapshot& snapshot, const std::vector<Attribution>& holders)
      : snapshot_(snapshot), holders_(holders) {
    for (const auto& gpu : snapshot.inventory.gpus) add(gpu);
  }
  std::vector<Source> take() { return std::move(list_); }

 private:
  void add(const model::Gpu& gpu) {
    Source source;
    source.card = find_reading(snapshot_, gpu.uuid);
    if (source.card == nullptr || !source.card->lost.empty()) return;
    const auto xid = snapshot_.counters.last_xid.find(gpu.uuid);
    if (xid != snapshot_.counters.last_xid.end()) source.last_xid = xid->second;
    source.labels = card_labels(gpu);
    source.divided = !gpu.mig.instances.empty();
    if (!source.divided) return add_held(std::move(source), gpu.uuid, {});
    for (const auto& mig : gpu.mig.instances) {
      Source one = source;
      one.instance = find_instance(*source.card, mig.uuid);
      add_label(one.labels, "GPU_I_PROFILE", mig.profile);
      add_label(one.labels, "GPU_I_ID", fmt::format_int(mig.gpu_instance).c_str());
      add_held(std::move(one), gpu.uuid, mig.uuid);
    }
  }

  // Once for each holder, or once without a pod if there is no holder.
  void add_held(Source source, const model::GpuUuid& gpu, const model::GpuUuid& mig) {
    if (!snapshot_.node.empty()) add_label(source.labels, "hostname", snapshot_.node);
    if (!snapshot_.inventory.driver.version.empty())
      add_label(source.labels, "DCGM_FI_DRIVER_VERSION", snapshot_.inventory.driver.version);
    bool held = false;
    for (const auto& holder : holders_) {
      if (holder.gpu != gpu || holder.mig != mig) continue;
      held = true;
      Source one = source;
      add_dcgm_pod(one.labels, holder.holder);
      if (holder.shared) one.pod = pod_usage(*source.card, holder);
      list_.push_back(std::move(one));
    }
    if (!held) list_.push_back(std::move(source));
  }

  const Snapshot& snapshot_;
  const std::vector<Attribution>& holders_;
  std::vector<Source> list_;
};

void add_xid_counts(const Snapshot& snapshot, MetricsWriter& page) {
  page.begin(kXidCount);
  for (const auto& [key, count] : snapshot.counters.xids) {
    for (const auto& gpu : snapshot.inventory.gpus) {
      if (gpu.uuid != key.gpu) continue;
      auto labels = card_labels(gpu);
      if (!snapshot.node.empty()) add_label(labels, "hostname", snapshot.node);
      add_label(labels, "xid", fmt::format_int(key.xid).c_str());
      page.series(labels, count);
    }
  }
}

}  // namespace

void add_dcgm(const Snapshot& snapshot, const std::vector<Attribution>& holders,
              MetricsWriter& page) {
  const auto sources = Sources(snapshot, holders).take();
  for (const auto& row : kRows) {
    page.begin(row.metric);
    for (const auto& source : sources) {
      if (const auto value = row.get(source)) page.series(source.labels, *value);
    }
  }
  add_xid_counts(snapshot, page);
}

std::vector<std::string_view> dcgm_names() {
  std::vector<std::string_view> names;
  names.reserve(kRows.size() + 1);
  for (const auto& row : kRows) names.push_back(row.metric.name);
  names.push_back(kXidCount.name);
  return names;
}

}  // namespace gantry::metrics
