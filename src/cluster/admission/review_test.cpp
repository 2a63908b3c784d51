// SPDX-License-Identifier: Apache-2.0
#include "base/core/base64.hpp"
#include "cluster/admission/admission.hpp"
#include "support/parsed_json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::admission {
namespace {

using testing::HasSubstr;

std::string review_text(const std::string& object) {
  return fmt::format(
      R"({{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"7-1","operation":"CREATE",)"
      R"("resource":{{"group":"","version":"v1","resource":"pods"}},"object":{}}}}})",
      object);
}

std::string pod(const std::string& limits, const std::string& annotations = "") {
  return fmt::format(
      R"({{"metadata":{{"annotations":{{{}}}}},"spec":{{"containers":[{{"name":"a","resources":{{"limits":{{{}}}}}}}]}}}})",
      annotations, limits);
}

json::Document answer(const std::string& object) {
  const auto text = review(review_text(object), {});
  EXPECT_TRUE(text.ok()) << text.error().text();
  return gantry::test::parsed(text.ok() ? *text : "null");
}

TEST(Review, SaysYes) {
  EXPECT_EQ(
      answer(pod("")).text(),
      R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"7-1","allowed":true}})");
}

TEST(Review, CarriesThePatch) {
  const auto document = answer(pod(R"("nvidia.com/gpumem":5)"));
  EXPECT_EQ(document["response"]["patchType"].string(), "JSONPatch");
  EXPECT_EQ(
      *from_base64(*document["response"]["patch"].string()),
      R"([{"op":"add","path":"/spec/containers/0/resources/limits/nvidia.com~1gpu","value":"1"}])");
}

TEST(Review, SaysNoWithItsReason) {
  const auto status = [](const std::string& object) {
    return std::string(answer(object)["response"]["status"].raw());
  };
  EXPECT_THAT(status(pod(R"("nvidia.com/gpu":"x\n")")),
              HasSubstr(R"("reason":"Invalid","code":422)"));
  EXPECT_THAT(status(pod(R"("nvidia.com/gpu":1)", R"("gantry.dev/placement":"")")),
              HasSubstr(R"("reason":"Forbidden","code":403)"));
}

TEST(Review, HasFewAndShortWarnings) {
  std::string annotations;
  for (int number = 0; number < 100; ++number)
    annotations += fmt::format(R"({}"gantry.dev/{}{}":"")", number == 0 ? "" : ",",
                               std::string(90, 'x'), number);
  const auto document = answer(pod(R"("nvidia.com/gpu":1)", annotations));
  EXPECT_EQ(document["response"]["warnings"].size(), 14U);
  std::size_t sum = 0;
  for (const auto warning : document["response"]["warnings"]) sum += warning.raw().size();
  EXPECT_LT(sum, 4096U);
}

TEST(Review, OfSomethingElseIsInvalid) {
  for (
      const auto* text :
      {"", "{}", "[1]",
       R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"1"}})",
       R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"})",
       R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":""}})"})
    EXPECT_FALSE(review(text, {}).ok()) << text;
  EXPECT_FALSE(review(std::string(9U << 20U, ' '), {}).ok());
  EXPECT_FALSE(review(std::string(100'000, '['), {}).ok());
}

}  // namespace
}  // namespace gantry::admission
