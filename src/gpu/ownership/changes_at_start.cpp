// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/changes_at_start.hpp"

#include "gpu/ownership/owner_change.hpp"

#include <fmt/format.h>

#include <chrono>

namespace gantry::ownership {
namespace {

constexpr std::chrono::milliseconds kLookAgain{200};

}  // namespace

ChangesAtStart::ChangesAtStart(sys::Loop& loop, const sys::Host& host, std::function<void()> ended)
    : host_(host), ended_(std::move(ended)) {
  const auto changes = changes_under_way(host);
  if (changes.empty()) return;
  why_ = fmt::format("the owner of {} is being changed: {}", changes.front().gpu.sysfs(),
                     describe(changes.front()));
  timer_ = loop.every(kLookAgain, [this] { look(); });
}

void ChangesAtStart::look() {
  if (!changes_under_way(host_).empty()) return;
  timer_.cancel();
  ended_();
}

}  // namespace gantry::ownership
