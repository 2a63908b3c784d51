// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json/document.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace gantry::test {

// A text that must be JSON.
inline json::Document parsed(const std::string& text) {
  auto document = json::Document::parse(text);
  EXPECT_TRUE(document.ok()) << document.error().text() << ": " << text;
  return document.ok() ? *std::move(document) : *json::Document::parse("null");
}

}  // namespace gantry::test
