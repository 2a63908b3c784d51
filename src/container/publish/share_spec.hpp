// SPDX-License-Identifier: Apache-2.0
// Named shares as CDI devices, "gantry.dev/share=NAME", in a separate file.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/cdi/spec.hpp"
#include "container/plan/edits.hpp"
#include "gpu/model/inventory.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::publish {

inline constexpr std::string_view kShareSpecPath = "/var/run/cdi/gantry-share.json";
inline constexpr std::string_view kShareKind = "gantry.dev/share";
inline constexpr std::string_view kShareRecordAnnotation = "gantry.dev/share";  // annotation

enum class FenceUse : std::uint8_t { Yes, No };  // No: the hardware or MPS enforces the limits

struct ShareDevice {
  std::string name;
  std::vector<model::GpuUuid> gpus;  // GPUs or MIG instances
  std::string directory;             // its fence directory, inside the host's root
  FenceUse fenced = FenceUse::Yes;
  model::ContainerEdits more{};  // additional edits for its backend
  std::string record{};          // the value of its annotation; "": none
};

struct ShareSpecOptions {
  plan::PlanOptions plan;
  std::string cuda_library;  // of the fence, as engines see it
  std::string nvml_library;
};

// One device for each share; each device has all edits that its container needs.
Result<cdi::Spec> generate_share_spec(const model::Inventory& machine,
                                      std::span<const ShareDevice> shares,
                                      const ShareSpecOptions& options);

// The slot of a container in a pod, in a separate file. The node agent creates and removes it with
// the pod. Only the agent uses names with this prefix.
inline constexpr std::string_view kSlotPrefix = "slot-";
inline constexpr const char* kSlotSpecPathPrefix =
    "/var/run/cdi/gantry-slot-";  // the prefix of their paths
std::string slot_spec_path(std::string_view name);
// Without GPUs, the device contains only `more`.
Result<bool> write_slot_spec(const sys::Host& host, const model::Inventory& machine,
                             const ShareDevice& slot, const ShareSpecOptions& options);
Status remove_slot_spec(const sys::Host& host, std::string_view name);
std::vector<std::string> slot_spec_names(const sys::Host& host);

// Writes the file by rename, or removes it if there are no shares. Returns true if it changed.
Result<bool> write_share_spec(const sys::Host& host, const model::Inventory& machine,
                              std::span<const ShareDevice> shares, const ShareSpecOptions& options);

}  // namespace gantry::publish
