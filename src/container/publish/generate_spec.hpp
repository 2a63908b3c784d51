// SPDX-License-Identifier: Apache-2.0
// Generates the CDI specifications of a machine: GPUs and MIG instances, their common edits, and
// other kinds of devices.
#pragma once

#include "base/core/result.hpp"
#include "container/cdi/spec.hpp"
#include "container/plan/edits.hpp"
#include "gpu/model/inventory.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::publish {

// Gpu is for workloads; each of the others is a separate CDI kind.
enum class SpecKind : std::uint8_t { Gpu, Management, Gds, Gdrcopy, Mofed, Nvswitch, Imex };

std::string_view cdi_class(SpecKind kind);  // "gpu", "gds", "imex-channel"

// Parses "auto", "nvml", "management", "gds", "gdrcopy", "mofed", "nvswitch", "imex". Unsupported
// for NVIDIA's "csv" and "wsl", Invalid for any other word.
Result<SpecKind> parse_mode(std::string_view word);

enum class DeviceNameStrategy : std::uint8_t {
  Index,     // 0, 0:1
  Uuid,      // GPU-..., MIG-...
  TypeIndex  // gpu0, mig0:1
};
Result<DeviceNameStrategy> parse_name_strategy(std::string_view word);

struct SpecOptions {
  SpecKind kind = SpecKind::Gpu;
  std::string vendor;      // "": nvidia.com, or management.nvidia.com
  std::string class_name;  // "": gpu, gds, gdrcopy, mofed, nvswitch, imex-channel
  std::vector<DeviceNameStrategy> names{DeviceNameStrategy::Index,
                                        DeviceNameStrategy::Uuid};  // one name for each
  std::vector<std::string> devices;  // ids for plan::select; empty: all
  bool all_device = true;            // add the device "all": every device of the specification
  std::vector<model::Capability> capabilities;
  plan::PlanOptions plan;
  std::string target_version;  // of CDI; "": the lowest version that has all fields
};

struct GeneratedSpec {
  cdi::Spec spec;
  std::vector<std::string> notes;  // what was left out, one sentence each
};

// Never returns a specification without devices: NotFound says why there are none.
Result<GeneratedSpec> generate_spec(const model::Inventory& machine, const SpecOptions& options);

}  // namespace gantry::publish
