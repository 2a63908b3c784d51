// SPDX-License-Identifier: Apache-2.0
// Plans, applies and undoes on a tree.
#pragma once

#include "container/engines/journal.hpp"
#include "support/tree.hpp"

#include <gtest/gtest.h>

namespace gantry::engines {

inline JournalResult configure(const test::Tree& tree, const EngineOptions& options) {
  const auto plan = make_plan(tree.host(), options);
  EXPECT_TRUE(plan.ok()) << plan.error().text();
  const auto outcome = apply(tree.host(), *plan, *disk_file_writer());
  EXPECT_TRUE(outcome.ok()) << outcome.error().text();
  return *outcome;
}

inline JournalResult undo_changes(const test::Tree& tree, Engine engine) {
  const auto outcome = undo(tree.host(), engine, *disk_file_writer());
  EXPECT_TRUE(outcome.ok()) << outcome.error().text();
  return *outcome;
}

inline std::string read_text(const test::Tree& tree, std::string_view path) {
  return tree.host().read(path).value_or("(absent)");
}

}  // namespace gantry::engines
