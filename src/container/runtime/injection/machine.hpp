// SPDX-License-Identifier: Apache-2.0
// The machine as the start of a container sees it: the inventory and the prepared driver directory
// that somebody made before, checked against the running kernel. No driver is asked here.
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
  bool from_procfs = false;        // no inventory could be had
  std::vector<std::string> notes;  // what was done otherwise than usual
};

// Makes inventory and prepared directory anew: `gantry cdi refresh`. Slow; may be refused.
using RefreshFunction = std::function<Status()>;

// Why what was written down is not what runs, "" when it is: another boot, another driver, other
// MIG instances.
std::string stale_reason(const sys::Host& host, const model::Inventory& inventory);

// Reads, checks, refreshes once where that is needed. Where no inventory can be had and the
// prepared directory fits the running driver: whole GPUs from procfs. Otherwise an error with the
// command that helps.
Result<Machine> open_machine(const sys::Host& host, const RefreshFunction& refresh);

// The version of the running driver, as far as `known` can be recognised in it.
bool runs_driver(const sys::Host& host, std::string_view known);

// `gantry cdi refresh` of the program beside this one, or of PATH's.
Status refresh_by_gantry(const std::string& root, std::int64_t deadline_seconds);

}  // namespace gantry::runtime
