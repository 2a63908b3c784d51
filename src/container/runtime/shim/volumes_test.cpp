// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/shim/volumes.hpp"

#include "support/blocked_syscalls.hpp"
#include "support/tree.hpp"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <thread>

namespace gantry::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VolumesTest : public ::testing::Test {
 protected:
  VolumesTest() {
    tree_.link("image/etc", "/data").directory("image/data").directory("driver/lib64");
    tree_.file("driver/nvidia.icd").directory("image/usr").link("image/opt", "usr");
    tree_.directory("volume/here").file("volume/icd").file("hosts");
  }
  rootfs::Root root() const { return *rootfs::Root::at(tree_.path("image")); }
  model::MountEdit bind(const char* from, const char* to) const {
    return {.host_path = tree_.path(from), .container_path = to, .why = "a reason"};
  }
  oci::Mount volume(const char* destination, std::vector<std::string> options = {"rbind"}) const {
    return {tree_.path("volume"), destination, std::move(options)};
  }
  std::vector<oci::Mount> of_the_container() const {
    return {
        {"proc", "/proc"}, {"tmpfs", "/usr"}, volume("/data"), {tree_.path("hosts"), "/etc/hosts"}};
  }
  // Which of the mounts are left.
  std::vector<model::MountEdit> left_of(std::vector<model::MountEdit> mounts,
                                        const std::vector<oci::Mount>& volumes) {
    const auto image = root();
    const auto status =
        Volumes(image, volumes, tree_.path("")).remove_impossible_mounts(mounts, remarks_);
    EXPECT_TRUE(status.ok());
    return mounts;
  }
  Error refusal_of(const model::MountEdit& mount, const std::vector<oci::Mount>& volumes) {
    const auto image = root();
    std::vector<model::MountEdit> mounts = {mount};
    const auto status =
        Volumes(image, volumes, tree_.path("")).remove_impossible_mounts(mounts, remarks_);
    return status.ok() ? Error(Errc::Internal, "not refused") : status.error();
  }
  test::Tree tree_;
  Volumes::VolumeNotes remarks_;
};

TEST_F(VolumesTest, FollowsTheImagesLinks) {
  const auto image = root();
  const Volumes volumes(image, of_the_container());
  EXPECT_EQ(volumes.over("/etc/ld.so.cache"), "/data");
  EXPECT_EQ(volumes.over("/data"), "/data");
  EXPECT_EQ(volumes.over("/database"), "");
  EXPECT_EQ(volumes.over("/usr/lib"), "");  // memory is nobody's volume
  EXPECT_EQ(Volumes(image, {}).over("/etc"), "");
}

TEST_F(VolumesTest, AFileOfOneVolumeIsNotAllOfItsDirectory) {
  tree_.remove("image/etc").directory("image/etc");
  const auto image = root();
  const Volumes volumes(image, of_the_container());
  EXPECT_EQ(volumes.over("/etc/ld.so.cache"), "");
  EXPECT_EQ(volumes.over("/etc/hosts"), "/etc/hosts");
}

// runc and crun mount such a volume at /data, whether /missing exists or not.
TEST_F(VolumesTest, DotsInADestinationHideNoVolume) {
  const auto image = root();
  EXPECT_EQ(Volumes(image, {volume("/missing/../data")}).over("/etc/ld.so.cache"),
            "/missing/../data");
  EXPECT_EQ(Volumes(image, {volume("//data/./a/..//")}).over("/etc/ld.so.cache"),
            "//data/./a/..//");
}

// The runtime creates the volume's mount point, which makes the link lead there.
TEST_F(VolumesTest, ALinkToAVolumeThatIsNotThereYetIsFollowed) {
  tree_.remove("image/data");
  const auto image = root();
  EXPECT_EQ(Volumes(image, of_the_container()).over("/etc/ld.so.cache"), "/data");
}

TEST_F(VolumesTest, FollowsTheLinksInAVolume) {
  tree_.link("first/nvidia", "/data").directory("image/usr/local");
  const auto image = root();
  const Volumes volumes(image, {volume("/data"), {tree_.path("first"), "/usr/local", {"rbind"}}});
  EXPECT_EQ(volumes.over("/usr/local/nvidia/lib64"), "/data");
  EXPECT_EQ(volumes.over("/usr/local/lib64"), "/usr/local");
}

TEST_F(VolumesTest, ASourceCanBeRelativeToTheBundle) {
  const auto image = root();
  const std::vector<oci::Mount> relative = {{"volume", "/data", {"bind"}}};
  EXPECT_EQ(Volumes(image, relative, tree_.path("")).over("/etc/x"), "/data");
  EXPECT_THAT(left_of({bind("driver/lib64", "/data/here")}, relative),
              ElementsAre(bind("driver/lib64", "/data/here")));
}

TEST_F(VolumesTest, FilesThatWouldBeMadeInAVolumeAreLeftOut) {
  EXPECT_THAT(left_of({bind("driver/nvidia.icd", "/etc/OpenCL/nvidia.icd"),
                       bind("driver/lib64", "/usr/local/nvidia/lib64"),
                       bind("driver/nvidia.icd", "/data/new")},
                      of_the_container()),
              ElementsAre(bind("driver/lib64", "/usr/local/nvidia/lib64")));
  EXPECT_THAT(remarks_.notes,
              ElementsAre(HasSubstr("/etc/OpenCL/nvidia.icd is in the volume at /data"),
                          HasSubstr("/data/new is in the volume at /data")));
}

TEST_F(VolumesTest, AMountPointThatTheVolumeHasIsUsed) {
  const std::vector<model::MountEdit> mounts = {bind("driver/lib64", "/data/here"),
                                                bind("driver/nvidia.icd", "/data/icd")};
  EXPECT_EQ(left_of(mounts, of_the_container()), mounts);
  EXPECT_THAT(left_of({bind("driver/nvidia.icd", "/data/here")}, of_the_container()), IsEmpty());
}

TEST_F(VolumesTest, NothingIsMountedWhereTheHostWouldSeeIt) {
  EXPECT_THAT(left_of({bind("driver/nvidia.icd", "/data/icd")}, {volume("/data", {"rshared"})}),
              IsEmpty());
  EXPECT_THAT(remarks_.notes, ElementsAre(HasSubstr("would show the mount to the host")));
}

TEST_F(VolumesTest, ADirectoryOfTheDriversThereIsAnErrorWithTheCommandThatHelps) {
  for (const char* path : {"/etc/lib64", "/data/lib64"}) {
    const auto error = refusal_of(bind("driver/lib64", path), of_the_container());
    EXPECT_EQ(error.code(), Errc::Denied);
    EXPECT_THAT(error.cause(), HasSubstr(std::string(path) + " is in the volume at /data"));
    EXPECT_THAT(error.remedy(), HasSubstr("`mkdir -p '" + tree_.path("volume/lib64") + "'`"));
  }
}

TEST_F(VolumesTest, ADirectoryThatIsMountedElsewhereMayBeLeftOut) {
  EXPECT_THAT(left_of({bind("driver/lib64", "/opt/lib64"), bind("driver/lib64", "/data/lib64")},
                      of_the_container()),
              ElementsAre(bind("driver/lib64", "/opt/lib64")));
}

// Makes the image read-only, as one on squashfs is, in a mount namespace of its own.
bool seal(const std::string& image) {
  const auto* path = image.c_str();
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount(path, path, nullptr, MS_BIND, nullptr) == 0 &&
         ::mount(nullptr, path, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0;
}

TEST_F(VolumesTest, InARootThatCannotBeWrittenFilesWithoutAPlaceAreLeftOut) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to make a read-only mount";
  tree_.file("driver/smi").directory("driver/bin").file("image/usr/bin/nvidia-smi");
  test::run_in_child("on a read-only root", [&] {
    ASSERT_TRUE(seal(tree_.path("image")));
    const auto smi = bind("driver/smi", "/usr/bin/nvidia-smi");
    const auto socket = bind("driver/smi", "/run/nvidia-persistenced/socket");
    EXPECT_THAT(left_of({smi, bind("driver/smi", "/usr/bin/nvidia-debugdump"), socket,
                         bind("driver/bin", "/usr/local/nvidia/bin")},
                        {{"tmpfs", "/run"}}),
                ElementsAre(smi, socket));
    EXPECT_THAT(remarks_.warnings,
                ElementsAre(AllOf(HasSubstr("cannot be written"),
                                  HasSubstr("/usr/bin/nvidia-debugdump, /usr/local/nvidia/bin:"))));
    const auto error = refusal_of(bind("driver/lib64", "/usr/local/nvidia/lib64"), {});
    EXPECT_THAT(error.cause(), HasSubstr("cannot use a GPU without a reason"));
    EXPECT_EQ(error.remedy(), "create /usr/local/nvidia/lib64 in the image");
  });
}

// A neighbour with the same volume exchanges a directory with a link out of the volume.
TEST_F(VolumesTest, IsNotConfusedByAVolumeThatChangesMeanwhile) {
  tree_.link("image/usr/local", "/data").directory("volume/nvidia/lib64").link("volume/trap", "/x");
  const auto one = tree_.path("volume/nvidia");
  const auto other = tree_.path("volume/trap");
  std::jthread neighbour([&](const std::stop_token& stop) {
    while (!stop.stop_requested())
      ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
  });
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto error =
        refusal_of(bind("driver/lib64", "/usr/local/nvidia/lib64"), of_the_container());
    if (error.code() == Errc::Internal) continue;  // not refused
    ++refused;
    ASSERT_THAT(error.cause(), HasSubstr("/usr/local/nvidia/lib64 is in the volume at /data"));
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace gantry::runtime
