// SPDX-License-Identifier: Apache-2.0
// Turns without a daemon. While none controls the gates, each process of a share with a cap keeps
// to it by itself: it opens and shuts its own gates (daemon_link.hpp) by an account of the GPU time
// that it uses. docs/decisions/0031-without-a-share-daemon.md gives the reasons.
#pragma once

#include <stdint.h>

namespace gantry::fence {

// Call this about every millisecond while the GPU is in use, and before a launch that is not
// certain to pass. Notices whether a daemon controls the gates, and controls them if none does.
void pace(uint32_t gpu);
// True if there has been no daemon for so long that a share with a cap may not launch.
bool launches_are_refused(uint32_t gpu);
void reset_pacing_after_fork();

}  // namespace gantry::fence
