// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/shim/volumes.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VolumesTest : public ::testing::Test {
 protected:
  VolumesTest() {
    tree_.link("image/etc", "/data").directory("image/data").directory("driver/lib64");
    tree_.file("driver/nvidia.icd").directory("image/usr").link("image/opt", "usr");
  }
  rootfs::Root root() const { return *rootfs::Root::at(tree_.path("image")); }
  model::MountEdit bind(const char* from, const char* to) const {
    return {.host_path = tree_.path(from), .container_path = to, .why = "a reason"};
  }
  test::Tree tree_;
};

const std::vector<oci::Mount> of_the_container = {{"proc", "/proc"},
                                                  {"tmpfs", "/usr"},
                                                  {"/var/lib/volumes/a", "/data"},
                                                  {"/etc/hosts", "/etc/hosts"}};

TEST_F(VolumesTest, FollowsTheImagesLinks) {
  const auto image = root();
  const Volumes volumes(image, of_the_container);
  EXPECT_EQ(volumes.over("/etc/ld.so.cache"), "/data");
  EXPECT_EQ(volumes.over("/data"), "/data");
  EXPECT_EQ(volumes.over("/database"), "");
  EXPECT_EQ(volumes.over("/usr/lib"), "");  // memory is nobody's volume
  EXPECT_EQ(Volumes(image, {}).over("/etc"), "");
}

TEST_F(VolumesTest, AFileOfOneVolumeIsNotAllOfItsDirectory) {
  tree_.remove("image/etc").directory("image/etc");
  const auto image = root();
  const Volumes volumes(image, of_the_container);
  EXPECT_EQ(volumes.over("/etc/ld.so.cache"), "");
  EXPECT_EQ(volumes.over("/etc/hosts"), "/etc/hosts");
}

TEST_F(VolumesTest, FilesThatWouldBeMadeInAVolumeAreLeftOut) {
  const auto image = root();
  std::vector<model::MountEdit> mounts = {bind("driver/nvidia.icd", "/etc/OpenCL/nvidia.icd"),
                                          bind("driver/lib64", "/usr/local/nvidia/lib64"),
                                          bind("driver/nvidia.icd", "/data/asked-for")};
  std::vector<std::string> notes;
  ASSERT_TRUE(Volumes(image, of_the_container).remove_mounts_in_volumes(mounts, notes).ok());
  EXPECT_THAT(mounts, ElementsAre(bind("driver/lib64", "/usr/local/nvidia/lib64"),
                                  bind("driver/nvidia.icd", "/data/asked-for")));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("into the volume at /data")));
}

TEST_F(VolumesTest, ADirectoryOfTheDriversThereIsAnError) {
  const auto image = root();
  std::vector<model::MountEdit> mounts = {bind("driver/lib64", "/etc/lib64")};
  std::vector<std::string> notes;
  const auto status = Volumes(image, of_the_container).remove_mounts_in_volumes(mounts, notes);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::Denied);
  EXPECT_THAT(status.error().text(), HasSubstr("lead /etc/lib64 into the volume at /data"));
  EXPECT_THAT(notes, IsEmpty());
}

}  // namespace
}  // namespace gantry::runtime
