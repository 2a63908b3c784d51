// SPDX-License-Identifier: Apache-2.0
// Whatever comes, an answer is JSON, a refusal has its reason, and a pod that was filled in needs
// nothing more.
#include "cluster/admission/admission.hpp"
#include "cluster/admission/edits_internal.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>

namespace {

void check_patched(const gantry::json::Document& document,
                   const gantry::admission::AdmissionResult& verdict,
                   const gantry::admission::Policy& policy) {
  auto review = nlohmann::json::parse(document.text(), nullptr, false);
  if (review.is_discarded()) return;  // numbers beyond a double, bytes that are no UTF-8
  auto& object = review["request"]["object"];
  object = object.patch(nlohmann::json::parse(verdict.patch));
  const auto again = gantry::json::Document::parse(
      review.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  GANTRY_ASSERT(again.ok());
  const auto second = gantry::admission::admit_request((*again)["request"], policy);
  GANTRY_ASSERT(second.answer == gantry::admission::Admission::Allowed);
  GANTRY_ASSERT(second.patch.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using gantry::admission::Admission;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const gantry::admission::Policy policy{.unit_mib = size % 2 == 0 ? 1024U : 1U,
                                         .scheduler_name = size % 3 == 0 ? "gantry" : "",
                                         .trusted = {"scheduler"}};
  const auto answer = gantry::admission::review(text, policy);
  if (!answer.ok()) return 0;
  GANTRY_ASSERT(gantry::json::Document::parse(*answer).ok());
  const auto document = gantry::json::Document::parse(text);
  const auto verdict = gantry::admission::admit_request((*document)["request"], policy);
  GANTRY_ASSERT((verdict.answer == Admission::Allowed) == verdict.message.empty());
  if (!verdict.patch.empty()) check_patched(*document, verdict, policy);
  return 0;
}
