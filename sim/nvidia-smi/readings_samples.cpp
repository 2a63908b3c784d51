// SPDX-License-Identifier: Apache-2.0
//
// What -q -d adds for POWER, UTILIZATION and CLOCK: the samples the driver kept.
#include "sim/nvidia-smi/readings.hpp"

namespace smi {
namespace {

constexpr unsigned kMaxSamples = 256;

struct Samples {
  nvmlReturn_t error = NVML_ERROR_NOT_FOUND;
  unsigned count = 0;
  double seconds = 0, highest = 0, lowest = 0, mean = 0;
};

Samples read_samples(const Gpu& gpu, nvmlSamplingType_t type) {
  Samples out;
  nvmlSample_t rows[kMaxSamples] = {};
  nvmlValueType_t kind = NVML_VALUE_TYPE_UNSIGNED_INT;
  out.count = kMaxSamples;
  out.error =
      call(gpu.session->nvml.nvmlDeviceGetSamples, gpu.handle, type, 0ULL, &kind, &out.count, rows);
  if (out.error != NVML_SUCCESS || out.count == 0 || out.count > kMaxSamples) {
    out.count = 0;
    return out;
  }
  out.lowest = rows[0].sampleValue.uiVal;
  for (unsigned i = 0; i < out.count; ++i) {
    const double value = rows[i].sampleValue.uiVal;
    out.highest = value > out.highest ? value : out.highest;
    out.lowest = value < out.lowest ? value : out.lowest;
    out.mean += value / out.count;
  }
  out.seconds = static_cast<double>(rows[out.count - 1].timeStamp - rows[0].timeStamp) / 1e6;
  return out;
}

void set_value(nvmlSamplingType_t type, double value, Text& out) {
  switch (type) {
    case NVML_TOTAL_POWER_SAMPLES: out.set("%.2f W", value / 1000.0); break;
    case NVML_PROCESSOR_CLK_SAMPLES:
    case NVML_MEMORY_CLK_SAMPLES: out.set("%.0f MHz", value); break;
    default: out.set("%.0f %%", value); break;
  }
}

}  // namespace

void sample(const Gpu& gpu, const Arg& arg, Text& out) {
  const auto type = static_cast<nvmlSamplingType_t>(arg.which / kSampleParts);
  const Samples samples = read_samples(gpu, type);
  if (samples.count == 0) {
    out.set("%s", samples.error == NVML_ERROR_NOT_SUPPORTED ? kNotAvailable : "Not Found");
    return;
  }
  switch (static_cast<SamplePart>(arg.which % kSampleParts)) {
    case SamplePart::Duration: out.set("%.2f sec", samples.seconds); break;
    case SamplePart::Count: out.set("%u", samples.count); break;
    case SamplePart::Max: set_value(type, samples.highest, out); break;
    case SamplePart::Min: set_value(type, samples.lowest, out); break;
    case SamplePart::Avg: set_value(type, samples.mean, out); break;
  }
}

}  // namespace smi
