// SPDX-License-Identifier: Apache-2.0
// What gantry asks `gantry-nvml mig`, and what it answers: one JSON object in a line each. A
// library in that process may overwrite its memory, so every number, length and name is checked.
#pragma once

#include "base/core/result.hpp"
#include "base/json/writer.hpp"
#include "gpu/mig/mig_gpu.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::mig_nvml {

struct MigRequest {
  enum class Kind : std::uint8_t {
    Read,
    SetMode,
    CreateGpuInstance,
    CreateComputeInstance,
    DestroyComputeInstance,
    DestroyGpuInstance
  };
  Kind kind = Kind::Read;
  model::PciAddress gpu;          // all but Read
  bool enable = false;            // SetMode
  unsigned profile = 0;           // Create...: NVML's number of it
  mig::Placement place;           // Create...; of size 0: the driver chooses
  unsigned gpu_instance = 0;      // ...ComputeInstance, DestroyGpuInstance
  unsigned compute_instance = 0;  // DestroyComputeInstance
  bool operator==(const MigRequest&) const = default;
};
std::string_view to_string(MigRequest::Kind kind);  // "create-gpu-instance"

// A process that NVML sees on an instance.
struct MigProcess {
  model::PciAddress gpu;
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
  std::uint32_t pid = 0;
  bool operator==(const MigProcess&) const = default;
};

struct MigMachine {
  std::vector<mig::MigGpu> gpus;  // in NVML's order
  std::vector<MigProcess> processes;
  bool operator==(const MigMachine&) const = default;
};

struct MigAnswer {
  bool done = false;
  Errc code = Errc::Internal;  // if it is not done
  std::string text;            // why not; SetMode: why the mode is only pending
  unsigned created = 0;        // Create...: the id of the instance
  MigMachine machine;          // Read
  bool operator==(const MigAnswer&) const = default;
};

inline constexpr std::size_t kMaxRequest = 1024;
inline constexpr std::size_t kMaxAnswer = std::size_t{4} << 20;

// Without the line break.
std::string to_line(const MigRequest& request);
std::string to_line(const MigAnswer& answer);
// Corrupt if it is not such a message.
Result<MigRequest> parse_request(std::string_view line);
Result<MigAnswer> parse_answer(std::string_view line);

// The members of one GPU, also for `gantry mig list --json`.
void write_gpu(json::Writer& out, const mig::MigGpu& gpu);

}  // namespace gantry::mig_nvml
