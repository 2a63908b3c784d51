// SPDX-License-Identifier: Apache-2.0
// A state of a share with a value in every field.
#pragma once

#include "sharing/daemon/share_state.hpp"

#include <utility>

namespace gantry::daemon {

inline ShareState example_state(policy::Share share) {
  return {.share = std::move(share),
          .directory = "/run/gantry/shares/train/fence",
          .held = true,
          .refused = 3,
          .gpus = {{.uuid = {"GPU-1"},
                    .memory_total = 7,
                    .memory_limit = UINT64_MAX,
                    .memory_held = 5,
                    .memory_used = 6,
                    .part = 0.3,
                    .used = 0.25,
                    .measured = -1,
                    .gate = "open",
                    .busy = true,
                    .unmanaged = {{.pid = 7, .memory_used = 8, .command = "other"}}}},
          .processes = {{.pid = 9,
                         .inner_pid = 1,
                         .command = "a \"b\"",
                         .gpus = {{.memory_held = 5, .launches = 8, .contexts = 1}}}},
          .more_processes = 2,
          .findings = {{.at_unix_ms = 5, .kind = "memory", .pid = 9, .text = "too much"}}};
}

}  // namespace gantry::daemon
