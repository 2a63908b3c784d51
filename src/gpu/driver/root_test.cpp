// SPDX-License-Identifier: Apache-2.0
#include "gpu/driver/root.hpp"

#include "gpu/driver/driver_tree_for_test.hpp"

#include <gmock/gmock.h>

namespace gantry::driver {
namespace {

using test::Tree;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(FindRoot, DebianKeepsTheDriverInTheMultiarchDirectory) {
  Tree tree;
  put_module(tree, "550.54.14");
  put_driver(tree, "usr/lib/x86_64-linux-gnu", "550.54.14");
  tree.link("lib", "usr/lib");
  const auto root = find_root(tree.host());
  EXPECT_EQ(root.root, "/");
  EXPECT_EQ(root.kernel_version, "550.54.14");
  EXPECT_EQ(root.library_version, "550.54.14");
  EXPECT_EQ(root.library_directory, "/usr/lib/x86_64-linux-gnu");
  EXPECT_THAT(root.others, IsEmpty());
  EXPECT_THAT(root.notes, IsEmpty());
  ASSERT_EQ(root.directories.size(), 1U);
  EXPECT_EQ(root.directories[0].why, "standard directory");
}

TEST(FindRoot, ADirectoryOfItsOwnIsTheRoot) {
  Tree tree;
  put_module(tree, "580.159.04");
  put_driver(tree, "usr/local/nvidia/lib64", "580.159.04");
  tree.link("usr/local/nvidia/lib", "lib64");
  tree.link("usr/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1");
  const auto root = find_root(tree.host());
  EXPECT_EQ(root.root, "/usr/local/nvidia");
  EXPECT_FALSE(root.is_chroot);
  EXPECT_EQ(root.library_directory, "/usr/local/nvidia/lib64");
  EXPECT_EQ(root.directories.size(), 1U);
}

TEST(FindRoot, GkeMountsTheDriverBelowHome) {
  Tree tree;
  put_module(tree, "535.104.05");
  put_driver(tree, "home/kubernetes/bin/nvidia/lib64", "535.104.05");
  const auto root = find_root(tree.host());
  EXPECT_EQ(root.root, "/home/kubernetes/bin/nvidia");
  EXPECT_EQ(root.library_directory, "/home/kubernetes/bin/nvidia/lib64");
}

TEST(FindRoot, OldUbuntuSplitsLibcudaFromTheRest) {
  Tree tree;
  put_module(tree, "384.98");
  put_library(tree, "usr/lib/x86_64-linux-gnu", "libcuda", "384.98");
  put_library(tree, "usr/lib/nvidia-384", "libnvidia-ml", "384.98");
  const auto root = find_root(tree.host());
  EXPECT_EQ(root.root, "/");
  EXPECT_EQ(root.library_directory, "/usr/lib/x86_64-linux-gnu");
  ASSERT_EQ(root.directories.size(), 2U);
  EXPECT_EQ(root.directories[1].path, "/usr/lib/nvidia-384");
  EXPECT_EQ(root.directories[1].why, "directory of one driver branch");
}

TEST(FindRoot, NixosLeadsIntoTheStore) {
  Tree tree;
  put_module(tree, "565.77");
  put_driver(tree, "nix/store/aaa-nvidia-x11-565.77/lib", "565.77");
  for (const auto* name :
       {"libcuda.so.565.77", "libcuda.so.1", "libnvidia-ml.so.565.77", "libnvidia-ml.so.1"}) {
    tree.link(fmt::format("nix/store/bbb-graphics-drivers/lib/{}", name),
              fmt::format("/nix/store/aaa-nvidia-x11-565.77/lib/{}", name));
  }
  tree.link("run/opengl-driver", "/nix/store/bbb-graphics-drivers");
  const auto root = find_root(tree.host());
  EXPECT_EQ(root.root, "/");
  EXPECT_EQ(root.library_version, "565.77");
  EXPECT_EQ(root.library_directory, "/nix/store/aaa-nvidia-x11-565.77/lib");
}

TEST(FindRoot, ADriverContainersRootIsAMachineOfItsOwn) {
  Tree tree;
  put_module(tree, "570.86.15");
  put_driver(tree, "run/nvidia/driver/opt/real", "570.86.15");
  // Absolute: outside the container's root it would lead elsewhere.
  tree.link("run/nvidia/driver/usr/lib/x86_64-linux-gnu", "/opt/real");
  put_driver(tree, "opt/real", "470.1");
  const auto root = find_root(tree.host());
  EXPECT_EQ(root.root, "/run/nvidia/driver");
  EXPECT_TRUE(root.is_chroot);
  EXPECT_EQ(root.library_version, "570.86.15");
  EXPECT_EQ(root.library_directory, "/run/nvidia/driver/opt/real");
}

TEST(FindRoot, TheHostsOwnDriverWinsOverAContainersOfTheSameVersion) {
  Tree tree;
  put_module(tree, "570.86.15");
  put_driver(tree, "usr/lib64", "570.86.15");
  put_driver(tree, "run/nvidia/driver/usr/lib64", "570.86.15");
  EXPECT_EQ(find_root(tree.host()).library_directory, "/usr/lib64");
}

TEST(FindRoot, AContainersDriverWinsWhenOnlyItFitsTheModule) {
  Tree tree;
  put_module(tree, "570.86.15");
  put_driver(tree, "usr/lib64", "550.54.14");
  put_driver(tree, "run/nvidia/driver/usr/lib64", "570.86.15");
  const auto root = find_root(tree.host());
  EXPECT_EQ(root.library_directory, "/run/nvidia/driver/usr/lib64");
  EXPECT_THAT(root.others, ElementsAre(OtherDriver{"550.54.14", "/usr/lib64"}));
}

TEST(FindRoot, LdSoCacheLeadsToUnusualDirectories) {
  Tree tree;
  put_module(tree, "550.54.14");
  put_driver(tree, "srv/odd/place", "550.54.14");
  put_cache(tree, {{.name = "libcuda.so.1", .path = "/srv/odd/place/libcuda.so.1"}});
  const auto root = find_root(tree.host());
  EXPECT_EQ(root.library_directory, "/srv/odd/place");
  ASSERT_EQ(root.directories.size(), 1U);
  EXPECT_EQ(root.directories[0].why, "in ld.so.cache");
  EXPECT_THAT(root.directories[0].cached_names, ElementsAre("libcuda.so.1"));
}

TEST(FindRoot, AStaleVersionBesideIsReportedNotMixed) {
  Tree tree;
  put_module(tree, "550.54.14");
  put_driver(tree, "usr/lib64", "550.54.14");
  tree.file("usr/lib64/libnvidia-glcore.so.470.57.02", test::elf_image({}));
  tree.file("usr/lib64/libmozjs-102.so.102.15.1",
            test::elf_image({}));  // looks like a version, but is not one
  const auto root = find_root(tree.host());
  EXPECT_EQ(root.library_version, "550.54.14");
  EXPECT_THAT(root.others, ElementsAre(OtherDriver{"470.57.02", "/usr/lib64"}));
  EXPECT_THAT(root.notes, Contains(HasSubstr("470.57.02")));
}

TEST(FindRoot, TheLoadersChoiceStandsWhenNothingFitsTheModule) {
  Tree tree;
  put_module(tree, "560.35.03");
  put_driver(tree, "usr/lib64", "470.57.02");
  put_driver(tree, "srv/other", "550.54.14");
  put_cache(tree, {{.name = "libcuda.so.1", .path = "/srv/other/libcuda.so.1"},
                   {.name = "libcuda.so.1", .path = "/usr/lib64/libcuda.so.1"}});
  const auto root = find_root(tree.host());
  EXPECT_EQ(root.kernel_version, "560.35.03");
  EXPECT_EQ(root.library_version, "550.54.14");
  EXPECT_THAT(
      root.notes,
      Contains(HasSubstr("the kernel module is 560.35.03 but the libraries in /srv/other")));
}

TEST(FindRoot, A32BitLibraryIsNeverTheDriversDirectory) {
  Tree tree;
  put_module(tree, "550.54.14");
  put_driver(tree, "usr/lib", "550.54.14", Bits::B32);
  put_driver(tree, "usr/local/nvidia/lib64", "550.54.14");
  EXPECT_EQ(find_root(tree.host()).library_directory, "/usr/local/nvidia/lib64");
}

TEST(FindRoot, AMachineWithoutTheDriverSaysWhereWasLooked) {
  Tree tree;
  tree.directory("usr/lib64");
  const auto root = find_root(tree.host());
  EXPECT_FALSE(root.found());
  EXPECT_THAT(root.notes, ElementsAre(HasSubstr("/usr/local/nvidia")));
}

TEST(FindRoot, ADamagedCacheIsNotedAndTheRestIsFound) {
  Tree tree;
  put_driver(tree, "usr/lib64", "550.54.14");
  tree.file("etc/ld.so.cache", "glibc-ld.so.cache1.1 and then nothing");
  const auto root = find_root(tree.host());
  EXPECT_EQ(root.library_version, "550.54.14");
  EXPECT_THAT(root.notes, ElementsAre(HasSubstr("ld.so.cache")));
}

TEST(FindRoot, LinksInACircleEnd) {
  Tree tree;
  tree.link("usr/lib64", "lib64").link("usr/lib/libcuda.so.1", "libcuda.so.1");
  tree.link("usr/local/nvidia/lib64", "../../local/nvidia/lib64");
  EXPECT_FALSE(find_root(tree.host()).found());
}

TEST(FindRoot, WslIsNoted) {
  Tree tree;
  tree.file("usr/lib/wsl/lib/libcuda.so.1.1");
  EXPECT_THAT(find_root(tree.host()).notes, Contains(HasSubstr("WSL")));
}

}  // namespace
}  // namespace gantry::driver
