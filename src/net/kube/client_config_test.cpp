// SPDX-License-Identifier: Apache-2.0
#include "net/kube/client_config.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace gantry::kube {
namespace {

constexpr std::string_view kHomeConfig = R"(
current-context: lab
clusters: [{name: lab, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: admin, user: {token: secret}}]
contexts: [{name: lab, context: {cluster: lab, user: admin}}]
)";

class AccessOf : public testing::Test {
 protected:
  AccessOf() {
    for (const auto* name : {"KUBECONFIG", "KUBERNETES_SERVICE_HOST"}) ::unsetenv(name);
    home_.file(".kube/config", kHomeConfig);
    ::setenv("HOME", home_.root().c_str(), 1);
  }
  test::Tree home_;
};

TEST_F(AccessOf, APersonIsTheirOwn) {
  const auto found = find_client_config("", Caller::Person);
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->token, "secret");
}

TEST_F(AccessOf, ANodeIsNeverAPersons) {
  const auto found = find_client_config("", Caller::Node);
  EXPECT_NE(found.ok() ? found->token : "", "secret");
}

TEST_F(AccessOf, AFileIsLookedForWhereTheProgramWasStarted) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(home_.root());
  const auto flag = find_client_config(".kube/config", Caller::Person);
  ::setenv("KUBECONFIG", ".kube/config", 1);
  const auto variable = find_client_config("", Caller::Person);
  std::filesystem::current_path(before);
  ASSERT_TRUE(flag.ok()) << flag.error().text();
  ASSERT_TRUE(variable.ok()) << variable.error().text();
  EXPECT_EQ(variable->from, home_.root() + "/.kube/config");
}

TEST_F(AccessOf, OfAListTheFirstThatIsThere) {
  ::setenv("KUBECONFIG", ("/nowhere/config:" + home_.root() + "/.kube/config").c_str(), 1);
  const auto found = find_client_config("", Caller::Person);
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->token, "secret");
}

TEST_F(AccessOf, AFileThatIsNotThereIsNamedAsAKubeconfig) {
  const auto found = find_client_config("/nowhere/config", Caller::Person);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), Errc::NotFound);
  EXPECT_THAT(found.error().text(), testing::HasSubstr("the kubeconfig: open /nowhere/config"));
  EXPECT_THAT(found.error().text(), testing::HasSubstr("--kubeconfig FILE"));
}

TEST_F(AccessOf, AnEmptyFileHasNoContext) {
  home_.file("empty", "");
  const auto found = find_client_config(home_.root() + "/empty", Caller::Person);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().text(), testing::HasSubstr("it does not name a context"));
}

}  // namespace
}  // namespace gantry::kube
