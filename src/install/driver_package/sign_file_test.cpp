// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/sign_file.hpp"

#include "support/tree.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_package {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SignPlanTest : public testing::Test {
 protected:
  SignPlanTest() {
    tree_.file("build/scripts/sign-file").file("keys/signing.der", "certificate");
    tree_.file("keys/signing.key", "secret");
    ::chmod(tree_.path("keys/signing.key").c_str(), 0400);
  }
  Result<SignPlan> plan(const SigningKey& key, const std::vector<std::string>& modules) {
    return plan_sign(tree_.host(), "/build", key, modules);
  }
  test::Tree tree_;
  SigningKey key_{"/keys/signing.key", "/keys/signing.der"};
};

TEST_F(SignPlanTest, IsOneCommandForEachModule) {
  const auto found = plan(key_, {"/m/nvidia.ko", "/m/nvidia-uvm.ko"});
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_THAT(found->commands,
              ElementsAre(ElementsAre("/build/scripts/sign-file", "sha512", "/keys/signing.key",
                                      "/keys/signing.der", "/m/nvidia.ko"),
                          ElementsAre("/build/scripts/sign-file", "sha512", "/keys/signing.key",
                                      "/keys/signing.der", "/m/nvidia-uvm.ko")));
  EXPECT_THAT(found->notes.back(), HasSubstr("a machine of its own"));
}

TEST_F(SignPlanTest, AKeyOnATokenIsNotAFile) {
  const auto found = plan({"pkcs11:object=modules", "/keys/signing.der"}, {"/m/nvidia.ko"});
  ASSERT_TRUE(found.ok()) << found.error().text();
  EXPECT_EQ(found->commands.at(0).at(2), "pkcs11:object=modules");
  EXPECT_EQ(found->notes.size(), 1U);
}

TEST_F(SignPlanTest, AKeyThatOthersCanReadIsRefused) {
  ::chmod(tree_.path("keys/signing.key").c_str(), 0640);
  const auto found = plan(key_, {"/m/nvidia.ko"});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), Errc::Denied);
  EXPECT_THAT(found.error().text(), HasSubstr("chmod 600 /keys/signing.key"));
}

TEST_F(SignPlanTest, SaysWhatIsMissing) {
  EXPECT_EQ(plan({"/keys/signing.key", ""}, {"/m/nvidia.ko"}).error().code(), Errc::Invalid);
  EXPECT_EQ(plan({"/keys/none", "/keys/signing.der"}, {"/m/nvidia.ko"}).error().code(),
            Errc::NotFound);
  EXPECT_EQ(plan({"/keys", "/keys/signing.der"}, {"/m/nvidia.ko"}).error().code(), Errc::Invalid);
  EXPECT_EQ(plan({"/keys/signing.key", "/keys/none"}, {"/m/nvidia.ko"}).error().code(),
            Errc::NotFound);
  EXPECT_EQ(plan(key_, {}).error().code(), Errc::Invalid);
  EXPECT_EQ(plan(key_, {"/m/nvidia.ko.xz"}).error().code(), Errc::Unsupported);
  tree_.remove("build/scripts/sign-file");
  const auto found = plan(key_, {"/m/nvidia.ko"});
  EXPECT_EQ(found.error().code(), Errc::NotFound);
  EXPECT_THAT(found.error().text(), HasSubstr("headers"));
}

}  // namespace
}  // namespace gantry::driver_package
