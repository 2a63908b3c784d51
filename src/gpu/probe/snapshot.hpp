// SPDX-License-Identifier: Apache-2.0
// The one way to an inventory. NVML is asked in a child process with a deadline while /proc, /sys
// and the driver's files are read here, so NVML that hangs, crashes or lies costs the deadline and
// its own facts, never more.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/driver/root.hpp"
#include "gpu/model/inventory.hpp"
#include "gpu/probe/nvml_view.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gantry::probe {

enum class NvmlUse : std::uint8_t {
  Use,
  Skip,
  ForMig  // only where a GPU has MIG instances, which NVML alone can name
};
enum class FindFiles : std::uint8_t { Yes, No };

struct SnapshotOptions {
  std::chrono::milliseconds deadline{10'000};  // for everything NVML does
  NvmlUse nvml = NvmlUse::Use;
  NvmlParts parts;
  FindFiles files = FindFiles::Yes;  // No: neither driver files nor device nodes
  std::string ld_cache = std::string(driver::kLoaderCache);
  driver::DriverLocation driver;  // where the driver's files are, when that was said
};

// Fails with NotFound where the root has neither /proc nor /sys. Everything less is in the
// inventory: driver.nvml_error, differences, notes, health. Call it from a process with one thread.
Result<model::Inventory> snapshot(const sys::Host& host, const SnapshotOptions& options = {});

// An inventory from a view that somebody else had from NVML (read_nvml_view's value): /proc, /sys
// and the driver's files are read now. Fails as snapshot does.
Result<model::Inventory> complete_inventory(const sys::Host& host, model::Inventory nvml,
                                            const SnapshotOptions& options = {});

// The same in two steps, for who has time to read while NVML starts. What was read ahead is read
// anew if the driver or the number of GPUs is another by then.
struct PrefetchedFacts;
std::shared_ptr<const PrefetchedFacts> prefetch(const sys::Host& host);
Result<model::Inventory> complete_inventory(const sys::Host& host, model::Inventory nvml,
                                            const PrefetchedFacts& ahead);

// Minors of the GPUs that have MIG instances, as /proc/driver/nvidia/capabilities shows them.
std::vector<std::uint32_t> gpus_with_instances(const sys::Host& host);

// Changes with boot id, driver version, GPUs and MIG layout; nothing else.
std::string generation_of(const model::Inventory& inventory);

enum class WriteResult : std::uint8_t { Replaced, Kept };

// Replaces /run/gantry/inventory.json. An inventory without GPUs does not replace one with GPUs
// (Kept), unless another driver demonstrably holds every GPU.
Result<WriteResult> write_inventory(const sys::Host& host, const model::Inventory& inventory);

inline constexpr std::string_view kInventoryPath = "/run/gantry/inventory.json";

}  // namespace gantry::probe
