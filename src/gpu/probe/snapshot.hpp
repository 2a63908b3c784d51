// SPDX-License-Identifier: Apache-2.0
// Creates an inventory; there is no other way. A child process, gantry-nvml, queries NVML with a
// deadline while /proc, /sys and the driver's files are read here. If NVML hangs or crashes, or if
// that program is not installed, only NVML's own facts and the time up to the deadline are lost.
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
  ForMig  // only if a GPU has MIG instances, which only NVML can name
};
enum class FindFiles : std::uint8_t { Yes, No };

struct SnapshotOptions {
  std::chrono::milliseconds deadline{10'000};  // for all NVML calls together
  NvmlUse nvml = NvmlUse::Use;
  NvmlParts parts;
  FindFiles files = FindFiles::Yes;  // No: neither driver files nor device nodes
  std::string ld_cache = std::string(driver::kLoaderCache);
  driver::DriverLocation driver;  // the location of the driver's files, if the user gave one
};

// Fails with NotFound if the root has neither /proc nor /sys. All other problems are in the
// inventory: driver.nvml_error, differences, notes, health.
Result<model::Inventory> snapshot(const sys::Host& host, const SnapshotOptions& options = {});

// The same, with the reason for driver.nvml_error as a code.
struct Snapshot {
  model::Inventory inventory;
  nvmlReturn_t nvml_failure = NVML_SUCCESS;
};
Result<Snapshot> take_snapshot(const sys::Host& host, const SnapshotOptions& options = {});

// Creates an inventory from an existing NVML view (the result of read_nvml_view); reads /proc, /sys
// and the driver's files now. Fails as snapshot does.
Result<model::Inventory> complete_inventory(const sys::Host& host, NvmlView nvml,
                                            const SnapshotOptions& options = {});

// The same in two steps, for a caller that has time to read while NVML starts. Re-reads the files
// if the driver or the number of GPUs changed in the meantime.
struct PrefetchedFacts;
std::shared_ptr<const PrefetchedFacts> prefetch(const sys::Host& host);
Result<model::Inventory> complete_inventory(const sys::Host& host, NvmlView nvml,
                                            const PrefetchedFacts& ahead);

// Changes only if boot id, driver version, GPUs or MIG layout change.
std::string generation_of(const model::Inventory& inventory);

enum class WriteResult : std::uint8_t { Replaced, Kept };

// Replaces /run/gantry/inventory.json. An inventory without GPUs does not replace one with GPUs
// (Kept), unless every GPU is bound to another driver.
Result<WriteResult> write_inventory(const sys::Host& host, const model::Inventory& inventory);

inline constexpr std::string_view kInventoryPath = "/run/gantry/inventory.json";

}  // namespace gantry::probe
