// SPDX-License-Identifier: Apache-2.0
#include "prepared/publish.hpp"

#include "plan/places.hpp"
#include "prepared/current.hpp"
#include "support/tree.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gantry::prepared {
namespace {

using enum model::Capability;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto kLibraries = "/usr/lib/x86_64-linux-gnu";

class Publish : public ::testing::Test {
 protected:
  Publish() {
    machine_.driver = {
        .version = "580.159.04", .library_version = "580.159.04", .library_directory = kLibraries};
    add_library("libcuda", Compute);
    add_library("libnvidia-ml", Utility);
    add_library("libGLX_nvidia", Graphics);
    add({.path = "/usr/bin/nvidia-smi",
         .kind = model::FileKind::Binary,
         .capabilities = {Utility}});
  }

  void add(model::DriverFile file) {
    tree_.file(file.path, file.path);
    machine_.files.push_back(std::move(file));
  }
  void add_library(const std::string& stem, model::Capability capability) {
    add({.path = fmt(stem + ".so.580.159.04"),
         .capabilities = {capability},
         .soname = stem + ".so.1",
         .links = {stem + ".so", stem + ".so.1"}});
  }
  static std::string fmt(const std::string& name) { return std::string(kLibraries) + "/" + name; }

  std::string in_current(const std::string& path) const {
    return tree_.path(std::string(plan::kCurrent) + "/" + path);
  }
  Result<Published> publish_now() { return publish(tree_.host(), machine_); }

  test::Tree tree_;
  model::Inventory machine_;
};

TEST_F(Publish, TheLibrariesAreThereUnderEveryName) {
  const auto published = publish_now();
  ASSERT_TRUE(published.ok()) << published.error().text();
  EXPECT_EQ(published->outcome, Outcome::Made);
  EXPECT_THAT(published->directory, StartsWith("/var/lib/gantry/driver/580.159.04-"));
  const auto host = tree_.host();
  for (const auto* name : {"libcuda.so", "libcuda.so.1", "libcuda.so.580.159.04"}) {
    EXPECT_EQ(host.read(std::string(plan::kCurrent) + "/lib64/" + name).value_or(""),
              fmt("libcuda.so.580.159.04"));
  }
  EXPECT_EQ(current(host)->version, "580.159.04");
}

TEST_F(Publish, FilesAreHardLinks) {
  ASSERT_TRUE(publish_now().ok());
  struct stat theirs {};
  struct stat ours {};
  ASSERT_EQ(::stat(tree_.path(fmt("libcuda.so.580.159.04")).c_str(), &theirs), 0);
  ASSERT_EQ(::stat(in_current("sets/compute/lib64/libcuda.so.1").c_str(), &ours), 0);
  EXPECT_EQ(theirs.st_ino, ours.st_ino);
}

TEST_F(Publish, ASetHasWhatItsCapabilitiesNeed) {
  ASSERT_TRUE(publish_now().ok());
  EXPECT_TRUE(std::filesystem::exists(in_current("sets/compute+utility/lib64/libcuda.so.1")));
  EXPECT_TRUE(std::filesystem::exists(in_current("sets/compute+utility/lib64/libnvidia-ml.so.1")));
  EXPECT_FALSE(
      std::filesystem::exists(in_current("sets/compute+utility/lib64/libGLX_nvidia.so.1")));
  EXPECT_TRUE(std::filesystem::exists(in_current("sets/graphics/lib64/libGLX_nvidia.so.1")));
  EXPECT_TRUE(std::filesystem::exists(in_current("bin/nvidia-smi")));
}

TEST_F(Publish, ASecondTimeChangesNothing) {
  const auto first = publish_now();
  const auto second = publish_now();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->outcome, Outcome::Current);
  EXPECT_EQ(first->directory, second->directory);
}

TEST_F(Publish, AFileThatOthersMayChangeIsRefusedByName) {
  std::filesystem::permissions(tree_.path(fmt("libnvidia-ml.so.580.159.04")),
                               std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  const auto refused = publish_now();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Denied);
  EXPECT_THAT(refused.error().text(), HasSubstr("libnvidia-ml.so.580.159.04"));
}

TEST_F(Publish, ADriverWithoutLibrariesReplacesNothing) {
  ASSERT_TRUE(publish_now().ok());
  machine_.files.clear();
  EXPECT_EQ(publish_now().error().code(), Errc::NotFound);
  EXPECT_TRUE(current(tree_.host()).ok());
}

}  // namespace
}  // namespace gantry::prepared
