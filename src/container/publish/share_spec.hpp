// SPDX-License-Identifier: Apache-2.0
// Named shares as CDI devices, "gantry.dev/share=NAME", in a file of their own.
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

enum class FenceUse : std::uint8_t { Yes, No };  // No: the hardware or another holds the limits

struct ShareDevice {
  std::string name;
  std::vector<model::GpuUuid> gpus;  // GPUs or MIG instances
  std::string directory;             // its fence directory, inside the host's root
  FenceUse fenced = FenceUse::Yes;
  model::ContainerEdits more{};  // what its backend needs beside
  std::string record{};          // its annotation; "": none
};

struct ShareSpecOptions {
  plan::PlanOptions plan;
  std::string cuda_library;  // the fence's, as engines see them
  std::string nvml_library;
};

// One device for each share; every one has all that its container needs.
Result<cdi::Spec> generate_share_spec(const model::Inventory& machine,
                                      std::span<const ShareDevice> shares,
                                      const ShareSpecOptions& options);

// The slot of a container in a pod, in a file of its own: the node agent's, which comes and goes
// with the pod. Names that begin so are the agent's alone.
inline constexpr std::string_view kSlotPrefix = "slot-";
inline constexpr const char* kSlotSpecPathPrefix =
    "/var/run/cdi/gantry-slot-";  // their paths begin so
std::string slot_spec_path(std::string_view name);
// Without GPUs: a device with `more` in it alone.
Result<bool> write_slot_spec(const sys::Host& host, const model::Inventory& machine,
                             const ShareDevice& slot, const ShareSpecOptions& options);
Status remove_slot_spec(const sys::Host& host, std::string_view name);
std::vector<std::string> slot_spec_names(const sys::Host& host);  // names

// Writes it, by rename; without shares the file goes. True: it is another one than before.
Result<bool> write_share_spec(const sys::Host& host, const model::Inventory& machine,
                              std::span<const ShareDevice> shares, const ShareSpecOptions& options);

}  // namespace gantry::publish
