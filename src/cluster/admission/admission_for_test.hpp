// SPDX-License-Identifier: Apache-2.0
// A request judged, and the pod as the API server would have it afterwards: patched by a library
// that is not ours.
#pragma once

#include "cluster/admission/admission.hpp"
#include "support/parsed_json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace gantry::admission::test {

inline const Policy kPolicy{.trusted = {"scheduler", "agent"}};

struct AdmittedPod {
  AdmissionResult verdict;
  nlohmann::json pod;
};

inline AdmittedPod create(const std::string& pod, const Policy& policy = kPolicy,
                          const std::string& user = R"({"username":"eve"})") {
  const auto request = gantry::test::parsed(fmt::format(
      R"({{"operation":"CREATE","resource":{{"group":"","version":"v1","resource":"pods"}},)"
      R"("userInfo":{},"object":{}}})",
      user, pod));
  AdmittedPod admitted{admit_request(request.root(), policy), nlohmann::json::parse(pod)};
  if (!admitted.verdict.patch.empty())
    admitted.pod = admitted.pod.patch(nlohmann::json::parse(admitted.verdict.patch));
  return admitted;
}

// One container "a" with these limits, more members of it, of the spec and of the metadata.
struct PodText {
  std::string limits;
  std::string container = "";
  std::string spec = "";
  std::string metadata = "";
};
inline std::string pod_text(const PodText& pod) {
  return fmt::format(R"({{"metadata":{{"name":"p"{}}},"spec":{{"containers":[{{"name":"a"{},)"
                     R"("resources":{{"limits":{{{}}}}}}}]{}}}}})",
                     pod.metadata, pod.container, pod.limits, pod.spec);
}

inline std::string refusal(const AdmittedPod& admitted, Admission answer) {
  EXPECT_EQ(admitted.verdict.answer, answer) << admitted.verdict.message;
  EXPECT_EQ(admitted.verdict.patch, "");
  return admitted.verdict.message;
}

}  // namespace gantry::admission::test
