// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/readings.hpp"

namespace smi {
namespace {

bool read_ecc_mode(const Gpu& gpu, nvmlEnableState_t mode[2]) {
  return call(nvml_of(gpu).nvmlDeviceGetEccMode, gpu.handle, &mode[0], &mode[1]) == NVML_SUCCESS;
}

bool ecc_in_use(const Gpu& gpu) {
  nvmlEnableState_t mode[2] = {NVML_FEATURE_DISABLED, NVML_FEATURE_DISABLED};
  return read_ecc_mode(gpu, mode) && mode[0] == NVML_FEATURE_ENABLED;
}

void set_count(bool known, unsigned long long count, Text& out) {
  known ? out.set("%llu", count) : out.set("%s", kNotAvailable);
}

bool read_counter(const Gpu& gpu, nvmlMemoryErrorType_t error, nvmlEccCounterType_t since,
                  nvmlMemoryLocation_t location, unsigned long long* count) {
  return call(nvml_of(gpu).nvmlDeviceGetMemoryErrorCounter, gpu.handle, error, since, location,
              count) == NVML_SUCCESS;
}

bool read_total(const Gpu& gpu, nvmlMemoryErrorType_t error, nvmlEccCounterType_t since,
                unsigned long long* count) {
  return call(nvml_of(gpu).nvmlDeviceGetTotalEccErrors, gpu.handle, error, since, count) ==
         NVML_SUCCESS;
}

// Counters for each kind of SRAM error; a driver without the call does not count them separately.
void read_sram(const Gpu& gpu, Ecc what, nvmlEccCounterType_t since, Text& out) {
  nvmlEccSramErrorStatus_t status = {};
  status.version = nvmlEccSramErrorStatus_v1;
  const bool known =
      call(nvml_of(gpu).nvmlDeviceGetSramEccErrorStatus, gpu.handle, &status) == NVML_SUCCESS;
  const bool now = since == NVML_VOLATILE_ECC;
  unsigned long long count = 0;
  switch (what) {
    case Ecc::SramParity: count = now ? status.volatileUncParity : status.aggregateUncParity; break;
    case Ecc::SramSecDed: count = now ? status.volatileUncSecDed : status.aggregateUncSecDed; break;
    case Ecc::SourceL2: count = status.aggregateUncBucketL2; break;
    case Ecc::SourceSm: count = status.aggregateUncBucketSm; break;
    case Ecc::SourceMcu: count = status.aggregateUncBucketMcu; break;
    case Ecc::SourcePcie: count = status.aggregateUncBucketPcie; break;
    case Ecc::SourceOther: count = status.aggregateUncBucketOther; break;
    default: break;
  }
  if (what == Ecc::Threshold) {
    out.set("%s", !known ? kNotAvailable : status.bThresholdExceeded != 0 ? "Yes" : "No");
    return;
  }
  set_count(known, count, out);
}

void read_ecc(const Gpu& gpu, Ecc what, nvmlEccCounterType_t since, Text& out) {
  if (!ecc_in_use(gpu)) {
    out.set("%s", kNotAvailable);
    return;
  }
  unsigned long long count = 0;
  const auto corrected = NVML_MEMORY_ERROR_TYPE_CORRECTED;
  const auto uncorrected = NVML_MEMORY_ERROR_TYPE_UNCORRECTED;
  bool known = false;
  switch (what) {
    case Ecc::SramCorrectable:
      known = read_counter(gpu, corrected, since, NVML_MEMORY_LOCATION_SRAM, &count);
      break;
    case Ecc::SramUncorrectable:
      known = read_counter(gpu, uncorrected, since, NVML_MEMORY_LOCATION_SRAM, &count);
      break;
    case Ecc::DramCorrectable:
      known = read_counter(gpu, corrected, since, NVML_MEMORY_LOCATION_DRAM, &count);
      break;
    case Ecc::DramUncorrectable:
      known = read_counter(gpu, uncorrected, since, NVML_MEMORY_LOCATION_DRAM, &count);
      break;
    case Ecc::Corrected: known = read_total(gpu, corrected, since, &count); break;
    case Ecc::Uncorrected: known = read_total(gpu, uncorrected, since, &count); break;
    default: read_sram(gpu, what, since, out); return;
  }
  set_count(known, count, out);
}

}  // namespace

void ecc_mode(const Gpu& gpu, const Arg& arg, Text& out) {
  nvmlEnableState_t mode[2] = {NVML_FEATURE_DISABLED, NVML_FEATURE_DISABLED};
  if (!read_ecc_mode(gpu, mode)) {
    out.set("%s", kNotAvailable);
    return;
  }
  out.set("%s", mode[arg.which & 1] == NVML_FEATURE_ENABLED ? "Enabled" : "Disabled");
}

void ecc_volatile(const Gpu& gpu, const Arg& arg, Text& out) {
  read_ecc(gpu, static_cast<Ecc>(arg.which), NVML_VOLATILE_ECC, out);
}

void ecc_aggregate(const Gpu& gpu, const Arg& arg, Text& out) {
  read_ecc(gpu, static_cast<Ecc>(arg.which), NVML_AGGREGATE_ECC, out);
}

void ecc_feature(const Gpu& gpu, const Arg& arg, Text& out) {
  out.set("%s", ecc_in_use(gpu) ? field_or(gpu, arg.key, arg.otherwise) : kNotAvailable);
}

void retired_pages(const Gpu& gpu, const Arg& arg, Text& out) {
  unsigned count = 0;
  const nvmlReturn_t error = call(nvml_of(gpu).nvmlDeviceGetRetiredPages, gpu.handle,
                                  static_cast<nvmlPageRetirementCause_t>(arg.which), &count,
                                  static_cast<unsigned long long*>(nullptr));
  set_count(error == NVML_SUCCESS || error == NVML_ERROR_INSUFFICIENT_SIZE, count, out);
}

void remapped_rows(const Gpu& gpu, const Arg& arg, Text& out) {
  unsigned rows[4] = {};
  if (call(nvml_of(gpu).nvmlDeviceGetRemappedRows, gpu.handle, &rows[0], &rows[1], &rows[2],
           &rows[3]) != NVML_SUCCESS) {
    out.set("%s", kNotAvailable);
    return;
  }
  const unsigned value = rows[arg.which & 3];
  if (arg.which >= static_cast<int>(Remap::Pending)) {
    out.set("%s", value != 0 ? "Yes" : "No");
  } else {
    out.set("%u", value);
  }
}

void remap_histogram(const Gpu& gpu, const Arg& arg, Text& out) {
  nvmlRowRemapperHistogramValues_t values = {};
  if (call(nvml_of(gpu).nvmlDeviceGetRowRemapperHistogram, gpu.handle, &values) != NVML_SUCCESS) {
    out.set("%s", kNotAvailable);
    return;
  }
  const unsigned banks[] = {values.max, values.high, values.partial, values.low, values.none};
  out.set("%u bank(s)", banks[arg.which < 5 ? arg.which : 4]);
}

}  // namespace smi
