// SPDX-License-Identifier: Apache-2.0
// Manifests of strangers: every answer has a step and can be printed, whatever the text is.
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "cluster/explain/manifest.hpp"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto explanations = gantry::explain::explain_manifest(text, "f");
  if (!explanations.ok()) {
    GANTRY_ASSERT(!explanations.error().text().empty());
    return 0;
  }
  for (const auto& explanation : *explanations) {
    GANTRY_ASSERT(!explanation.steps.empty());
    GANTRY_ASSERT(gantry::json::Document::parse(to_json(explanation)).ok());
    GANTRY_ASSERT(!gantry::contains(to_string(explanation, false), "\x1b"));
    const auto* failed = explanation.first_failed();
    GANTRY_ASSERT(failed == nullptr || !failed->cause.empty());
  }
  return 0;
}
