// SPDX-License-Identifier: Apache-2.0
// NVML without a library: a description of GPUs behind the same table of function pointers. One
// machine at a time (function pointers carry no state), alive as long as the FakeGpus.
#pragma once

#include "gpu/nvml/nvml.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::test {

struct FakeMig {
  std::string uuid;
  unsigned gpu_instance = 1;
  unsigned compute_instance = 0;
  unsigned profile = 0;  // place in FakeGpu::profiles
  unsigned compute_slices = 1;
  unsigned placement_start = 0;
};

struct FakeProfile {
  std::string name;  // "MIG 1g.18gb"
  unsigned id = 19;
  unsigned slices = 1;
  unsigned placement_size = 1;
  std::uint64_t memory_mib = 16384;
};

struct FakeGpu {
  std::string uuid = "GPU-0";
  std::string name = "NVIDIA H200";
  std::string bus_id = "00000000:01:00.0";
  unsigned minor = 0;
  std::uint64_t memory_bytes = std::uint64_t{143771} << 20U;
  bool mig_capable = true;
  bool mig_enabled = false;
  std::vector<FakeMig> mig;
  std::vector<FakeProfile> profiles = {FakeProfile{}};
  int switch_links = 0;
  std::vector<std::string> links;  // bus id behind each further NVLink
  std::vector<nvmlProcessInfo_t> compute;
  std::vector<nvmlProcessInfo_t> graphics;
  std::uint64_t ecc_uncorrected = 0;
  unsigned remap_pending = 0;
  unsigned remap_failure = 0;
  unsigned recovery_action = 0;
  unsigned long long clock_reasons = 1;  // idle
  unsigned char fabric_state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED;
};

class FakeGpus {
 public:
  explicit FakeGpus(std::vector<FakeGpu> list);
  ~FakeGpus();
  FakeGpus(const FakeGpus&) = delete;
  FakeGpus& operator=(const FakeGpus&) = delete;

  nvml::Nvml nvml() const;

  std::vector<FakeGpu> gpus;
  std::string driver_version = "580.159.04";
  nvmlGpuTopologyLevel_t level = NVML_TOPOLOGY_SYSTEM;
  std::map<unsigned, std::string> process_names;
  std::optional<unsigned> count;  // a false number of GPUs

  // Asked before every call: function, GPU (-1: none) and how many calls came before this one.
  // Anything but NVML_SUCCESS is returned instead of the answer.
  std::function<nvmlReturn_t(std::string_view function, int gpu, unsigned call)> fault;
  unsigned calls = 0;
};

}  // namespace gantry::test
