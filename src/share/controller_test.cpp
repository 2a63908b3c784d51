// SPDX-License-Identifier: Apache-2.0
#include "share/controller.hpp"

#include <gmock/gmock.h>

namespace gantry::share {
namespace {

using std::chrono::milliseconds;

TEST(Controller, AloneWithoutCapIsNeverShut) {
  Controller controller;
  controller.add(1, {}, milliseconds(0));
  controller.active(1, milliseconds(1));
  controller.tick(milliseconds(500));
  EXPECT_EQ(controller.gate(1).gate, Gate::Open);
  EXPECT_EQ(controller.gate(1).turn, 0);
}

TEST(Controller, TheNextOpensWhenTheLastHasDrained) {
  Controller controller;
  controller.add(1, {}, milliseconds(0));
  controller.add(2, {}, milliseconds(0));
  controller.active(1, milliseconds(0));
  controller.active(2, milliseconds(0));
  controller.tick(milliseconds(10));  // both had savings, now one has the turn
  const TenantId first = controller.gate(1).gate == Gate::Shut ? 2 : 1;
  const TenantId second = 3 - first;
  controller.drained(second, controller.gate(second).turn, milliseconds(11));
  EXPECT_EQ(controller.gate(first).gate, Gate::Open);

  controller.tick(milliseconds(62));
  EXPECT_EQ(controller.gate(first).gate, Gate::Shut);
  EXPECT_EQ(controller.gate(second).gate, Gate::Shut);
  controller.drained(first, controller.gate(first).turn, milliseconds(63));
  EXPECT_EQ(controller.gate(second).gate, Gate::Open);
}

}  // namespace
}  // namespace gantry::share
