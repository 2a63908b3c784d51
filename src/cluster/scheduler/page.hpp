// SPDX-License-Identifier: Apache-2.0
// /metrics of the scheduler, in Prometheus' text: what every GPU has promised under the names that
// HAMi's scheduler has for it, and how the scheduler itself does under our own.
#pragma once

#include "cluster/scheduler/book.hpp"
#include "cluster/scheduler/counters.hpp"
#include "cluster/scheduler/feed.hpp"

#include <string>
#include <vector>

namespace gantry::scheduler {

struct PageFacts {
  bool leading = false;
  bool ready = false;
  std::vector<Feed::Kind> kinds;
};

std::string page(const Book& book, const Counters& counters, const PageFacts& facts);

void append_gpus(std::string& page, const Book& book);
void append_own(std::string& page, const Book& book, const Counters& counters,
                const PageFacts& facts);

// Backslash, quote and new line, as label values need them.
std::string label(std::string_view value);

}  // namespace gantry::scheduler
