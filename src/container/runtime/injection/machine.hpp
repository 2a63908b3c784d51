// SPDX-License-Identifier: Apache-2.0
// The machine for the start of a container: the stored inventory and the prepared driver directory,
// checked against the running kernel. Does not call the driver.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "container/driver_dir/current.hpp"
#include "gpu/model/inventory.hpp"

#include <functional>
#include <string>
#include <vector>

namespace gantry::runtime {

struct Machine {
  model::Inventory inventory;
  driver_dir::CurrentDriver prepared;
  bool from_procfs = false;        // there was no usable inventory
  std::vector<std::string> notes;  // what was done differently than usual
};

// Rebuilds the inventory and the prepared directory: `gantry cdi refresh`. Slow; may fail.
using RefreshFunction = std::function<Status()>;

// Why the inventory does not match the running machine (another boot, another driver, other MIG
// instances); "" if it does.
std::string stale_reason(const sys::Host& host, const model::Inventory& inventory);

// Reads and checks the inventory, and refreshes it once if needed. If there is still no inventory
// but the prepared directory matches the running driver, uses whole GPUs from procfs. Otherwise
// returns an error with the command that helps.
Result<Machine> open_machine(const sys::Host& host, const RefreshFunction& refresh);

// Returns true if the running driver has the version `known`.
bool runs_driver(const sys::Host& host, std::string_view known);

// Runs `gantry cdi refresh`, with the gantry of this program's directory or of PATH.
Status refresh_by_gantry(const std::string& root, std::int64_t deadline_seconds);

}  // namespace gantry::runtime
