// SPDX-License-Identifier: Apache-2.0
#include "container/fence_mount/fence_mounts.hpp"

#include "base/sys/child.hpp"
#include "base/sys/host.hpp"
#include "gpu/abi/fence.h"
#include "support/tree.hpp"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

namespace gantry::fence_mount {
namespace {

using ::testing::HasSubstr;

class FenceMountsTest : public ::testing::Test {
 protected:
  FenceMountsTest() {
    tree_.file("share/socket", "socket")
        .file("share/cuda")
        .file("share/nvml")
        .file("ours/cuda", "our cuda")
        .file("ours/nvml", "our nvml")
        .file("driver/libcuda.so.1", "driver's cuda")
        .file("driver/libnvidia-ml.so.1", "driver's nvml")
        .file("compat/libcuda.so.1", "another cuda");
    ::chmod(tree_.root().c_str(), 0755);
  }

  FenceMounts fence_mounts() const {
    return {.share = tree_.path("share"),
            .fence_cuda = tree_.path("ours/cuda"),
            .fence_nvml = tree_.path("ours/nvml"),
            .real_cuda = tree_.path("driver/libcuda.so.1"),
            .real_nvml = tree_.path("driver/libnvidia-ml.so.1"),
            .cover_cuda = {tree_.path("driver/libcuda.so.1"), tree_.path("compat/libcuda.so.1")},
            .cover_nvml = {tree_.path("driver/libnvidia-ml.so.1")}};
  }

  // The files at these places as an enclosed process sees them, with "|" between them.
  Result<std::string> seen(const FenceMounts& e, NamespaceKind way,
                           const std::vector<std::string>& places,
                           const sys::ChildUser* user = nullptr) const {
    return sys::run_in_child(
        [&]() -> std::string {
          ::prctl(PR_SET_DUMPABLE, 1);  // as it is for who was never root
          if (const auto entered = enter_fence(e, way); !entered.ok())
            return entered.error().text();
          const auto host = sys::Host::at("/");
          std::string all;
          for (const auto& place : places) all += host->read(place).value_or("none") + "|";
          return all;
        },
        {.user = user});
  }

  test::Tree tree_;
};

TEST_F(FenceMountsTest, PutsTheFenceOverEveryCopyAndTheDriversOwnBehindIt) {
  const auto way =
      ::geteuid() == 0 ? NamespaceKind::MountNamespace : NamespaceKind::UserAndMountNamespace;
  if (const auto can = can_mount_fence(way); !can.ok()) GTEST_SKIP() << can.error().text();
  const auto e = fence_mounts();
  EXPECT_EQ(*seen(e, way,
                  {tree_.path("driver/libcuda.so.1"), tree_.path("compat/libcuda.so.1"),
                   tree_.path("driver/libnvidia-ml.so.1"), FENCE_REAL_CUDA, FENCE_REAL_NVML,
                   FENCE_SOCKET}),
            "our cuda|our cuda|our nvml|driver's cuda|driver's nvml|socket|");
}

TEST_F(FenceMountsTest, ChangesNothingOutside) {
  const auto way =
      ::geteuid() == 0 ? NamespaceKind::MountNamespace : NamespaceKind::UserAndMountNamespace;
  if (const auto can = can_mount_fence(way); !can.ok()) GTEST_SKIP() << can.error().text();
  ASSERT_THAT(*seen(fence_mounts(), way, {FENCE_SOCKET}), HasSubstr("socket"));
  EXPECT_EQ(*tree_.host().read("/driver/libcuda.so.1"), "driver's cuda");
  EXPECT_EQ(*tree_.host().read("/share/cuda"), "");
}

TEST_F(FenceMountsTest, WorksForAnybodyWhereUsersMayMakeNamespaces) {
  if (::geteuid() != 0) GTEST_SKIP() << "becoming somebody else takes root";
  const sys::ChildUser nobody{.uid = 65534, .gid = 65534};
  const auto could = sys::run_in_child(
      [] {
        ::prctl(PR_SET_DUMPABLE, 1);
        const auto can = can_mount_fence(NamespaceKind::UserAndMountNamespace);
        return can.ok() ? std::string() : can.error().text();
      },
      {.user = &nobody});
  if (!could->empty()) GTEST_SKIP() << *could;
  EXPECT_EQ(*seen(fence_mounts(), NamespaceKind::UserAndMountNamespace,
                  {tree_.path("compat/libcuda.so.1"), FENCE_REAL_CUDA, FENCE_SOCKET}, &nobody),
            "our cuda|driver's cuda|socket|");
}

TEST_F(FenceMountsTest, ShowsATreeThatIsTheMachineBesideTheFence) {
  const auto way =
      ::geteuid() == 0 ? NamespaceKind::MountNamespace : NamespaceKind::UserAndMountNamespace;
  if (const auto can = can_mount_fence(way); !can.ok()) GTEST_SKIP() << can.error().text();
  tree_.directory("share/machine").file("machine/dev.table", "nodes");
  auto e = fence_mounts();
  e.machine = tree_.path("machine");
  EXPECT_EQ(*seen(e, way, {FENCE_DIRECTORY "/machine/dev.table"}), "nodes|");
}

TEST_F(FenceMountsTest, SaysWhichFileIsMissing) {
  const auto way =
      ::geteuid() == 0 ? NamespaceKind::MountNamespace : NamespaceKind::UserAndMountNamespace;
  if (const auto can = can_mount_fence(way); !can.ok()) GTEST_SKIP() << can.error().text();
  auto e = fence_mounts();
  e.fence_cuda = tree_.path("ours/gone");
  EXPECT_THAT(*seen(e, way, {}), HasSubstr("ours/gone"));
}

}  // namespace
}  // namespace gantry::fence_mount
