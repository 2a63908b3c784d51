// SPDX-License-Identifier: Apache-2.0
#include "kube/access.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace gantry::kube {
namespace {

constexpr std::string_view kConfig = R"(
current-context: lab
clusters: [{name: lab, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: admin, user: {token: secret}}]
contexts: [{name: lab, context: {cluster: lab, user: admin}}]
)";

class AccessOf : public testing::Test {
 protected:
  AccessOf() {
    for (const auto* name : {"KUBECONFIG", "KUBERNETES_SERVICE_HOST"}) ::unsetenv(name);
    home_.file(".kube/config", kConfig);
    ::setenv("HOME", home_.root().c_str(), 1);
  }
  test::Tree home_;
};

TEST_F(AccessOf, APersonIsTheirOwn) {
  const auto found = find_access("", Who::Person);
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->token, "secret");
}

TEST_F(AccessOf, ANodeIsNeverAPersons) {
  const auto found = find_access("", Who::Node);
  EXPECT_NE(found.ok() ? found->token : "", "secret");
}

}  // namespace
}  // namespace gantry::kube
