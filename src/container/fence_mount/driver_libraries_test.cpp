// SPDX-License-Identifier: Apache-2.0
#include "container/fence_mount/driver_libraries.hpp"

#include "gpu/loader/ld_cache.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace gantry::fence_mount {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DriverLibraries, AreTheFilesBehindTheNamesEachOnce) {
  test::Tree tree;
  tree.file("usr/lib/x86_64-linux-gnu/libcuda.so.580.1")
      .link("usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.580.1")
      .link("usr/lib/x86_64-linux-gnu/libcuda.so", "libcuda.so.1")
      .file("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.1")
      .link("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "libnvidia-ml.so.580.1")
      .file("usr/lib/x86_64-linux-gnu/libcudadebugger.so.1")
      .link("lib", "usr/lib");
  const auto places = *find_driver_libraries(tree.host());
  EXPECT_THAT(places.cuda, ElementsAre("/usr/lib/x86_64-linux-gnu/libcuda.so.580.1"));
  EXPECT_THAT(places.nvml, ElementsAre("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.1"));
}

TEST(DriverLibraries, ASearchPathWithoutEndIsRefusedInsteadOfFollowed) {
  test::Tree tree;
  tree.file("usr/lib/libcuda.so.1");
  const auto colons = split_search_path(std::string(std::size_t{8} << 20, ':'), "/");
  EXPECT_LE(colons.size(), kMaxSearchedDirectories + 1);
  EXPECT_EQ(find_driver_libraries(tree.host(), colons).error().code(), Errc::Invalid);
  // Few names, each with many children: the same directory by other names.
  for (int i = 0; i < 400; ++i) tree.directory(fmt::format("opt/many/nvidia/{}", i));
  std::string again;
  for (int i = 0; i < 400; ++i) again += ":/opt/many" + std::string(static_cast<size_t>(i), '/');
  EXPECT_EQ(find_driver_libraries(tree.host(), split_search_path(again, "/")).error().code(),
            Errc::Invalid);
}

TEST(DriverLibraries, IncludeForwardCompatibilityOfEveryToolkitAndTheLoadersSubdirectories) {
  test::Tree tree;
  tree.file("usr/local/cuda-12.8/compat/libcuda.so.570.1")
      .file("usr/local/cuda-13.0/compat/lib.real/libcuda.so.580.1")
      .file("usr/lib64/glibc-hwcaps/x86-64-v2/libcuda.so.1")
      .file("usr/lib64/tls/libcuda.so.1");
  EXPECT_THAT(
      find_driver_libraries(tree.host())->cuda,
      ElementsAre("/usr/lib64/glibc-hwcaps/x86-64-v2/libcuda.so.1", "/usr/lib64/tls/libcuda.so.1",
                  "/usr/local/cuda-12.8/compat/libcuda.so.570.1",
                  "/usr/local/cuda-13.0/compat/lib.real/libcuda.so.580.1"));
}

TEST(DriverLibraries, IncludeWhatTheLoadersCacheAndTheSearchPathName) {
  test::Tree tree;
  tree.file("opt/driver/libcuda.so.1")
      .file("home/me/libs/libcuda.so")
      .file("etc/ld.so.cache",
            *loader::serialize_ld_cache({.entries = {{.name = "libcuda.so.1",
                                                      .path = "/opt/driver/"
                                                              "libcuda.so.1"}}}));
  EXPECT_THAT(find_driver_libraries(tree.host(), {"/home/me/libs"})->cuda,
              ElementsAre("/home/me/libs/libcuda.so", "/opt/driver/libcuda.so.1"));
}

TEST(DriverLibraries, IncludeThePreparedDirectories) {
  test::Tree tree;
  tree.file("var/lib/gantry/driver/580.1-00/lib64/libcuda.so.1")
      .file("var/lib/gantry/driver/580.1-00/sets/compute/lib64/libcuda.so.1")
      .link("var/lib/gantry/driver/current", "580.1-00");
  EXPECT_THAT(find_driver_libraries(tree.host())->cuda,
              ElementsAre("/var/lib/gantry/driver/580.1-00/lib64/libcuda.so.1",
                          "/var/lib/gantry/driver/580.1-00/sets/compute/lib64/libcuda.so.1"));
}

TEST(DriverLibraries, LeaveOutTheLinkersStubsDirectoriesAndDanglingLinks) {
  test::Tree tree;
  tree.file("usr/local/cuda/lib64/stubs/libcuda.so")
      .link("usr/lib64/libcuda.so.1", "gone")
      .directory("usr/lib64/libcuda.so.9");
  EXPECT_THAT(find_driver_libraries(tree.host(), {"/usr/local/cuda/lib64/stubs"})->cuda, IsEmpty());
}

TEST(DriverLibraries, HaveABound) {
  test::Tree tree;
  for (std::size_t i = 0; i <= kMaxDriverLibraries; ++i)
    tree.file("usr/lib64/libcuda.so." + std::to_string(i));
  const auto places = find_driver_libraries(tree.host());
  ASSERT_FALSE(places.ok());
  EXPECT_EQ(places.error().code(), Errc::Invalid);
}

TEST(SearchPath, IsReadAsTheLoaderReadsIt) {
  EXPECT_THAT(split_search_path("", "/here"), IsEmpty());
  EXPECT_THAT(split_search_path("/a:b;/c", "/here"), ElementsAre("/a", "/here/b", "/c"));
  EXPECT_THAT(split_search_path(":/a:", "/here"), ElementsAre("/here", "/a", "/here"));
}

}  // namespace
}  // namespace gantry::fence_mount
