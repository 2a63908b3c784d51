// SPDX-License-Identifier: Apache-2.0
//
// Each thing nvidia-smi can say about a GPU is read in one place and worded the same way ("143771
// MiB", "Not Active", "N/A"), whether it then appears in -q, in XML or in a --query-gpu column.
#pragma once

#include "sim/nvidia-smi/session.hpp"

namespace smi {

/// What a table row hands to its reader: a choice among variants, a field of the simulated machine,
/// and what to say when the machine has no such field.
struct Arg {
  int which = 0;
  const char* key = nullptr;
  const char* otherwise = kNotAvailable;
};

using Read = void (*)(const Gpu& gpu, const Arg& arg, Text& out);

/// A variant as the number in Arg::which.
constexpr int as(auto value) {
  return static_cast<int>(value);
}

constexpr const char* kDeprecated = "Requested functionality has been deprecated";

inline const Nvml& nvml_of(const Gpu& gpu) {
  return gpu.session->nvml;
}

/// A text of the simulated machine, kept for what NVML has no call for.
void field(const Gpu& gpu, const Arg& arg, Text& out);
const char* field_or(const Gpu& gpu, const char* key, const char* otherwise);

// Identity (readings_identity.cpp)
enum class PciPart { Domain, Bus, Device, BaseClass, SubClass, Id, BusId, SubsystemId };
enum class Link { GenMax, GenCurrent, GenGpuCurrent, GenGpuMax, WidthMax, WidthCurrent };
void product_name(const Gpu&, const Arg&, Text&);
void product_brand(const Gpu&, const Arg&, Text&);
void architecture(const Gpu&, const Arg&, Text&);
void uuid(const Gpu&, const Arg&, Text&);
void serial(const Gpu&, const Arg&, Text&);
void pdi(const Gpu&, const Arg&, Text&);
void minor_number(const Gpu&, const Arg&, Text&);
void vbios(const Gpu&, const Arg&, Text&);
void multi_board(const Gpu&, const Arg&, Text&);
void board_id(const Gpu&, const Arg&, Text&);
void board_part(const Gpu&, const Arg&, Text&);
void gpu_part(const Gpu&, const Arg&, Text&);
void module_id(const Gpu&, const Arg&, Text&);
void inforom(const Gpu&, const Arg&, Text&);  // which: -1 image, else nvmlInforomObject_t
void virtualization(const Gpu&, const Arg&, Text&);
void gsp_version(const Gpu&, const Arg&, Text&);
void gsp_mode(const Gpu&, const Arg&, Text&);
void pci(const Gpu&, const Arg&, Text&);   // which: PciPart
void link(const Gpu&, const Arg&, Text&);  // which: Link
void compute_capability(const Gpu&, const Arg&, Text&);
void driver_version(const Gpu&, const Arg&, Text&);
void gpu_index(const Gpu&, const Arg&, Text&);
void gpu_count(const Gpu&, const Arg&, Text&);
void timestamp(const Gpu&, const Arg&, Text&);
void fabric(const Gpu&, const Arg&,
            Text&);  // which: 0 state, 1 status, 2 clique, 3 cluster, 4 health

// Modes and load (readings_state.cpp)
enum class Mem { Total, Reserved, Used, Free };
enum class Util { Gpu, Memory, Encoder, Decoder, Jpeg, Ofa };
void display_attached(const Gpu&, const Arg&, Text&);
void display_active(const Gpu&, const Arg&, Text&);
void persistence(const Gpu&, const Arg&, Text&);
void mig_mode(const Gpu&, const Arg&, Text&);  // which: 0 current, 1 pending
void compute_mode(const Gpu&, const Arg&, Text&);
void recovery_action(const Gpu&, const Arg&, Text&);
void replays(const Gpu&, const Arg&, Text&);
void throughput(const Gpu&, const Arg&, Text&);  // which: 0 sent, 1 received
void fan_speed(const Gpu&, const Arg&, Text&);
void performance_state(const Gpu&, const Arg&, Text&);
void event_reason(const Gpu&, const Arg&, Text&);  // which: bit, 0 = the mask itself
void event_reasons_supported(const Gpu&, const Arg&, Text&);
void fb_memory(const Gpu&, const Arg&, Text&);    // which: Mem
void bar1_memory(const Gpu&, const Arg&, Text&);  // which: Mem
void utilization(const Gpu&, const Arg&, Text&);  // which: Util
void temperature(const Gpu&, const Arg&, Text&);
void temperature_margin(const Gpu&, const Arg&, Text&);
void temperature_threshold(const Gpu&, const Arg&, Text&);  // which: nvmlTemperatureThresholds_t
void memory_temperature(const Gpu&, const Arg&, Text&);
void power_draw(const Gpu&, const Arg&, Text&);  // which: NVML field id, 0 = NVML's own choice
void power_limit(const Gpu&, const Arg&,
                 Text&);  // which: 0 enforced, 1 requested, 2 default, 3 min, 4 max
void power_management(const Gpu&, const Arg&, Text&);
void clock_now(const Gpu&, const Arg&, Text&);          // which: nvmlClockType_t
void clock_max(const Gpu&, const Arg&, Text&);          // which: nvmlClockType_t
void clock_application(const Gpu&, const Arg&, Text&);  // which: nvmlClockType_t
void clock_default(const Gpu&, const Arg&, Text&);      // which: nvmlClockType_t
void clock_boost(const Gpu&, const Arg&, Text&);        // which: nvmlClockType_t

// Samples the driver kept (readings_samples.cpp)
enum class SamplePart { Duration, Count, Max, Min, Avg };
inline constexpr int kSampleParts = 5;
void sample(const Gpu&, const Arg&,
            Text&);  // which: nvmlSamplingType_t * kSampleParts + SamplePart

// Errors of the memory (readings_errors.cpp)
enum class Ecc {
  SramCorrectable,
  SramUncorrectable,
  SramParity,
  SramSecDed,
  DramCorrectable,
  DramUncorrectable,
  Threshold,
  SourceL2,
  SourceSm,
  SourceMcu,
  SourcePcie,
  SourceOther,
  Corrected,
  Uncorrected
};
enum class Remap { Correctable, Uncorrectable, Pending, Failure };
void ecc_mode(const Gpu&, const Arg&, Text&);         // which: 0 current, 1 pending
void ecc_volatile(const Gpu&, const Arg&, Text&);     // which: Ecc
void ecc_aggregate(const Gpu&, const Arg&, Text&);    // which: Ecc
void ecc_feature(const Gpu&, const Arg&, Text&);      // a field; N/A without ECC
void retired_pages(const Gpu&, const Arg&, Text&);    // which: nvmlPageRetirementCause_t
void remapped_rows(const Gpu&, const Arg&, Text&);    // which: Remap
void remap_histogram(const Gpu&, const Arg&, Text&);  // which: 0 max, high, partial, low, 4 none

/// Whether thresholds are told as distance to the limit, as Hopper and later do.
bool has_temperature_margin(const Gpu& gpu);
bool mig_enabled(const Gpu& gpu);
unsigned long long mebibytes(unsigned long long bytes);

}  // namespace smi
