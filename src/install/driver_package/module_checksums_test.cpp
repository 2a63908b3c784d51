// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/module_checksums.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_package {
namespace {

using testing::HasSubstr;

// Of "a module\n", by sha256sum.
constexpr const char* kDigest = "6884b2d645a75f2c9dd562869b1de94c036cbf389db07010b848850bbe3ef542";

TEST(ModuleChecksums, AreReadAsSha256sumWritesThem) {
  const std::string digest(64, 'a');
  const auto digests = parse_checksums(digest + "  nvidia.ko\n" + digest + " *k/nvidia-uvm.ko\n\n");
  ASSERT_TRUE(digests.ok());
  EXPECT_EQ(digests->size(), 2U);
  EXPECT_EQ(digests->at("k/nvidia-uvm.ko"), digest);
  for (const auto& bad : {std::string("nvidia.ko"), digest, digest + "  ", digest + " nvidia.ko",
                          "\\" + digest + "  a", std::string("<html>")})
    EXPECT_EQ(parse_checksums(bad).error().code(), Errc::Corrupt) << bad;
}

class ModuleDirectory : public testing::Test {
 protected:
  ModuleDirectory() { tree_.file("modules/6.1/nvidia.ko", "a module\n"); }
  Status check(const std::string& pinned = "") {
    const auto host = tree_.host();
    GANTRY_TRY(const auto list, read_module_checksums(host, "/modules", "/modules/6.1", pinned));
    return check_module_digest(host, list, "nvidia.ko", "/modules/6.1/nvidia.ko");
  }
  test::Tree tree_;
};

TEST_F(ModuleDirectory, MayHaveOneListForEveryKernelOrOneForEach) {
  EXPECT_EQ(check().error().code(), Errc::NotFound);
  EXPECT_THAT(check().error().text(), HasSubstr("sha256sum *.ko > SHA256SUMS"));
  const std::string line = std::string(kDigest) + "  ";
  tree_.file("modules/SHA256SUMS", line + "./6.1/nvidia.ko\n");
  EXPECT_TRUE(check().ok()) << check().error().text();
  tree_.file("modules/6.1/SHA256SUMS", line + "nvidia-uvm.ko\n");  // the nearer one counts
  EXPECT_THAT(check().error().text(), HasSubstr("has no digest of nvidia.ko"));
  tree_.file("modules/6.1/SHA256SUMS", line + "nvidia.ko\n");
  EXPECT_TRUE(check().ok());
}

TEST_F(ModuleDirectory, WithAnotherModuleOrAnotherListIsRefused) {
  tree_.file("modules/6.1/SHA256SUMS", std::string(kDigest) + "  nvidia.ko\n");
  const auto other = check(std::string(64, 'a'));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Errc::Denied);
  EXPECT_THAT(other.error().text(), HasSubstr("SHA256SUMS has the digest "));
  tree_.file("modules/6.1/nvidia.ko", "another module\n");
  const auto changed = check();
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().code(), Errc::Denied);
  EXPECT_THAT(changed.error().text(), HasSubstr("nvidia.ko has the digest "));
}

}  // namespace
}  // namespace gantry::driver_package
