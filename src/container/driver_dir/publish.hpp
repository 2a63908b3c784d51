// SPDX-License-Identifier: Apache-2.0
// Makes the prepared driver directory (plan/places.hpp has its layout): once for each driver, by
// rename of a finished directory, never changed afterwards.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace gantry::driver_dir {

enum class PublishOutcome : std::uint8_t {
  Unchanged,  // it was there
  Switched,   // it was there, and `current` led elsewhere
  Created
};

struct PublishResult {
  std::string directory;  // inside the host's root
  PublishOutcome outcome = PublishOutcome::Unchanged;
  std::string
      way;  // of a new one: "hard links", "reflinks", "copies", "the driver's own directory"
};

struct PublishOptions {
  std::chrono::milliseconds deadline{30'000};  // for another publisher to finish
};

// The files of `machine` become `current`. Fails, and leaves what is published as it is: NotFound
// for a driver without libraries, Denied for a file that others than root may change, Busy when
// another publisher does not finish, and what the file system says. Nothing half-made stays behind
// that the next call would not remove.
Result<PublishResult> publish(const sys::Host& host, const model::Inventory& machine,
                              const PublishOptions& options = {});

}  // namespace gantry::driver_dir
