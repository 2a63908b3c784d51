// SPDX-License-Identifier: Apache-2.0
// Creates the prepared driver directory (plan/driver_paths.hpp has its layout): once for each
// driver, by renaming a finished directory. It never changes afterwards.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace gantry::driver_dir {

enum class PublishOutcome : std::uint8_t {
  Unchanged,  // it existed already
  Switched,   // it existed already, but `current` pointed to another one
  Created
};

struct PublishResult {
  std::string directory;  // inside the host's root
  PublishOutcome outcome = PublishOutcome::Unchanged;
  std::string
      way;  // for a new one: "hard links", "reflinks", "copies", "the driver's own directory"
};

struct PublishOptions {
  std::chrono::milliseconds deadline{30'000};  // to wait for another publisher
};

// Makes the driver files of `machine` `current`. Errors leave the published directory as it is:
// NotFound for a driver without libraries, Denied for a file that users other than root can change,
// Busy if another publisher does not finish, and errors of the file system. The next call removes
// an incomplete directory that a crash left behind.
Result<PublishResult> publish(const sys::Host& host, const model::Inventory& machine,
                              const PublishOptions& options = {});

}  // namespace gantry::driver_dir
