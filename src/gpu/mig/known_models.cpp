// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/known_models.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "gpu/mig/compute_profiles.hpp"

#include <fmt/format.h>

#include <array>
#include <span>

namespace gantry::mig {
namespace {

// Copy, decoder, encoder, JPEG, optical flow.
using Engines = std::array<int, 5>;

struct Row {
  std::string_view name;
  unsigned id, slices, max;
  unsigned places;  // one begins where the one before it ends
  unsigned size;    // memory slices
  unsigned multiprocessors;
  std::uint64_t memory_mib;  // 0: not known here
  Engines engines;
};

struct Model {
  std::string_view name;
  std::string_view product;
  std::uint32_t device_id;
  std::span<const Row> rows;
};

// Ids, places, memory, multiprocessors of the A100: NVIDIA's MIG user guide, "Supported MIG
// Profiles", and `nvidia-smi mig -lgip` and `-lgipp` in it.
constexpr Row kA100Small[]{
    {"1g.5gb", 19, 1, 7, 7, 1, 14, 4864, {1, 0, 0, 0, 0}},
    {"1g.5gb+me", 20, 1, 1, 7, 1, 14, 4864, {1, 1, 0, 1, 1}},
    {"1g.10gb", 15, 1, 4, 4, 2, 14, 9856, {1, 1, 0, 0, 0}},
    {"2g.10gb", 14, 2, 3, 3, 2, 28, 9856, {2, 1, 0, 0, 0}},
    {"3g.20gb", 9, 3, 2, 2, 4, 42, 19968, {3, 2, 0, 0, 0}},
    {"4g.20gb", 5, 4, 1, 1, 4, 56, 19968, {4, 2, 0, 0, 0}},
    {"7g.40gb", 0, 7, 1, 1, 8, 98, 40192, {7, 5, 0, 1, 1}},
};
constexpr Row kA100Large[]{
    {"1g.10gb", 19, 1, 7, 7, 1, 14, 9728, {1, 0, 0, 0, 0}},
    {"1g.10gb+me", 20, 1, 1, 7, 1, 14, 9728, {1, 1, 0, 1, 1}},
    {"1g.20gb", 15, 1, 4, 4, 2, 14, 19968, {1, 1, 0, 0, 0}},
    {"2g.20gb", 14, 2, 3, 3, 2, 28, 19968, {2, 1, 0, 0, 0}},
    {"3g.40gb", 9, 3, 2, 2, 4, 42, 40192, {3, 2, 0, 0, 0}},
    {"4g.40gb", 5, 4, 1, 1, 4, 56, 40192, {4, 2, 0, 0, 0}},
    {"7g.80gb", 0, 7, 1, 1, 8, 98, 80896, {7, 5, 0, 1, 1}},
};
// The same guide; the memory in GiB with two digits.
constexpr Row kH100[]{
    {"1g.10gb", 19, 1, 7, 7, 1, 16, 9984, {1, 1, 0, 1, 0}},
    {"1g.10gb+me", 20, 1, 1, 7, 1, 16, 9984, {1, 1, 0, 1, 1}},
    {"1g.20gb", 15, 1, 4, 4, 2, 26, 20096, {1, 1, 0, 1, 0}},
    {"2g.20gb", 14, 2, 3, 3, 2, 32, 20096, {2, 2, 0, 2, 0}},
    {"3g.40gb", 9, 3, 2, 2, 4, 60, 40448, {3, 3, 0, 3, 0}},
    {"4g.40gb", 5, 4, 1, 1, 4, 64, 40448, {4, 4, 0, 4, 0}},
    {"7g.80gb", 0, 7, 1, 1, 8, 132, 81152, {8, 7, 0, 7, 1}},
};
// Read from an H200 through NVML, driver 580.
constexpr Row kH200[]{
    {"1g.18gb", 19, 1, 7, 7, 1, 16, 16384, {1, 1, 0, 1, 0}},
    {"1g.18gb+me", 20, 1, 1, 7, 1, 16, 16384, {1, 1, 0, 1, 1}},
    {"1g.35gb", 15, 1, 4, 4, 2, 26, 33280, {1, 1, 0, 1, 0}},
    {"2g.35gb", 14, 2, 3, 3, 2, 32, 33280, {2, 2, 0, 2, 0}},
    {"3g.71gb", 9, 3, 2, 2, 4, 60, 71424, {3, 3, 0, 3, 0}},
    {"4g.71gb", 5, 4, 1, 1, 4, 64, 71424, {4, 4, 0, 4, 0}},
    {"7g.141gb", 0, 7, 1, 1, 8, 132, 143360, {8, 7, 0, 7, 1}},
};
// The same guide; it gives the multiprocessors of the smallest and the largest profile only, and
// one decoder and JPEG engine for every profile, the largest included.
constexpr Row kB200[]{
    {"1g.23gb", 19, 1, 7, 7, 1, 18, 0, {2, 1, 0, 1, 0}},
    {"1g.23gb+me", 20, 1, 1, 7, 1, 18, 0, {2, 1, 0, 1, 1}},
    {"1g.45gb", 15, 1, 4, 4, 2, 0, 0, {2, 1, 0, 1, 0}},
    {"2g.45gb", 14, 2, 3, 3, 2, 0, 0, {3, 1, 0, 1, 0}},
    {"3g.90gb", 9, 3, 2, 2, 4, 0, 0, {6, 1, 0, 1, 0}},
    {"4g.90gb", 5, 4, 1, 1, 4, 0, 0, {8, 1, 0, 1, 0}},
    {"7g.180gb", 0, 7, 1, 1, 8, 148, 0, {16, 1, 0, 1, 1}},
};
// The same guide, and `nvidia-smi mig -lgipp` of an A30.
constexpr Row kA30[]{
    {"1g.6gb", 14, 1, 4, 4, 1, 14, 5952, {1, 0, 0, 0, 0}},
    {"1g.6gb+me", 21, 1, 1, 4, 1, 14, 5952, {1, 1, 0, 1, 1}},
    {"2g.12gb", 5, 2, 2, 2, 2, 28, 11968, {2, 2, 0, 0, 0}},
    {"2g.12gb+me", 6, 2, 1, 2, 2, 28, 11968, {2, 2, 0, 1, 1}},
    {"4g.24gb", 0, 4, 1, 1, 4, 56, 24064, {4, 4, 0, 1, 1}},
};
// Engines and ids: the same guide, with its output of `nvidia-smi mig -lgip`. It gives no places;
// they are those of an A30, the other GPU with four slices.
constexpr Row kRtxPro6000[]{
    {"1g.24gb", 14, 1, 4, 4, 1, 46, 24192, {1, 1, 1, 1, 0}},
    {"1g.24gb+me", 21, 1, 1, 4, 1, 46, 24192, {1, 1, 1, 1, 1}},
    {"1g.24gb+gfx", 47, 1, 4, 4, 1, 46, 24192, {1, 1, 1, 1, 0}},
    {"1g.24gb+me.all", 65, 1, 1, 4, 1, 46, 24192, {1, 4, 4, 4, 1}},
    {"1g.24gb-me", 67, 1, 4, 4, 1, 46, 24192, {1, 0, 0, 0, 0}},
    {"2g.48gb", 5, 2, 2, 2, 2, 94, 48512, {2, 2, 2, 2, 0}},
    {"2g.48gb+gfx", 35, 2, 2, 2, 2, 94, 48512, {2, 2, 2, 2, 0}},
    {"2g.48gb+me.all", 64, 2, 1, 2, 2, 94, 48512, {2, 4, 4, 4, 1}},
    {"2g.48gb-me", 66, 2, 2, 2, 2, 94, 48512, {2, 0, 0, 0, 0}},
    {"4g.96gb", 0, 4, 1, 1, 4, 188, 97280, {4, 4, 4, 4, 1}},
    {"4g.96gb+gfx", 32, 4, 1, 1, 4, 188, 97280, {4, 4, 4, 4, 1}},
};

constexpr Model kModels[]{
    {"A100-40GB", "NVIDIA A100-SXM4-40GB", 0x20B010DE, kA100Small},
    {"A100-80GB", "NVIDIA A100-SXM4-80GB", 0x20B210DE, kA100Large},
    {"A30", "NVIDIA A30", 0x20B710DE, kA30},
    {"H100", "NVIDIA H100 80GB HBM3", 0x233010DE, kH100},
    {"H200", "NVIDIA H200", 0x233510DE, kH200},
    {"B200", "NVIDIA B200", 0x290110DE, kB200},
    {"RTX-PRO-6000", "NVIDIA RTX PRO 6000 Blackwell", 0x2BB510DE, kRtxPro6000},
};

GpuProfile to_profile(const Row& row) {
  GpuProfile profile{.name = std::string(row.name),
                     .id = row.id,
                     .slices = row.slices,
                     .max = row.max,
                     .multiprocessors = row.multiprocessors,
                     .memory_mib = row.memory_mib,
                     .engines = {.copy = row.engines[0],
                                 .decoder = row.engines[1],
                                 .encoder = row.engines[2],
                                 .jpeg = row.engines[3],
                                 .optical_flow = row.engines[4]},
                     .places = {},
                     .compute = {}};
  for (unsigned i = 0; i < row.places; ++i) profile.places.push_back({i * row.size, row.size});
  profile.compute = usual_compute_profiles(profile);
  return profile;
}

MigGpu to_gpu(const Model& model) {
  MigGpu gpu{.uuid = {},
             .name = std::string(model.product),
             .device_id = model.device_id,
             .current = model::MigMode::Enabled,
             .pending = model::MigMode::Enabled,
             .profiles = {},
             .instances = {}};
  for (const auto& row : model.rows) gpu.profiles.push_back(to_profile(row));
  return gpu;
}

constexpr std::uint32_t kA30DeviceId = 0x20B710DE;

}  // namespace

std::vector<std::string> known_models() {
  std::vector<std::string> names;
  for (const auto& model : kModels) names.emplace_back(model.name);
  return names;
}

Result<MigGpu> known_gpu(std::string_view model) {
  for (const auto& known : kModels) {
    if (to_lower(known.name) == to_lower(model)) return to_gpu(known);
  }
  return Error(Errc::NotFound,
               fmt::format("there is no table for the model {}", printable(model.substr(0, 80))))
      .advise(fmt::format("known are {}", fmt::join(known_models(), ", ")));
}

std::string model_of(std::uint32_t device_id) {
  for (const auto& known : kModels) {
    if (known.device_id == device_id) return std::string(known.name);
  }
  return {};
}

void correct_profiles(MigGpu& gpu) {
  if (gpu.device_id != kA30DeviceId) return;
  for (auto& profile : gpu.profiles) {
    for (const auto& row : kA30) {
      if (profile.name == row.name) profile.max = row.max;
    }
  }
}

}  // namespace gantry::mig
