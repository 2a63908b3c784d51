// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/module_order.hpp"

#include <gmock/gmock.h>

namespace gantry::kernel_module {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

LoadedModule loaded(std::string name, int references, std::vector<std::string> users = {}) {
  return {.name = std::move(name),
          .bytes = 1,
          .references = references,
          .users = std::move(users),
          .state = "Live"};
}

TEST(LoadOrder, UsedModulesComeFirst) {
  const std::vector<std::string> wanted{"nvidia-drm", "nvidia-uvm", "nvidia-modeset", "nvidia"};
  EXPECT_THAT(load_order(wanted, {}),
              ElementsAre("nvidia", "nvidia-modeset", "nvidia-uvm", "nvidia-drm"));
}

TEST(LoadOrder, LeavesLoadedModulesOut) {
  const std::vector<std::string> wanted{"nvidia", "nvidia-uvm", "nvidia_uvm", "other"};
  EXPECT_THAT(load_order(wanted, {loaded("nvidia", 0)}),
              ElementsAre("nvidia-uvm", "nvidia_uvm", "other"));
  EXPECT_THAT(load_order(wanted, {loaded("nvidia", 0), loaded("nvidia_uvm", 0)}),
              ElementsAre("other"));
}

TEST(UnloadOrder, UsersComeFirst) {
  const auto order = unload_order(
      {loaded("nvidia", 4, {"nvidia_uvm", "nvidia_modeset", "nvidia_peermem", "gdrdrv"}),
       loaded("nvidia_modeset", 1, {"nvidia_drm"}), loaded("nvidia_uvm", 1, {"nvidia_fs"}),
       loaded("nvidia_drm", 0), loaded("nvidia_peermem", 0), loaded("nvidia_fs", 0),
       loaded("gdrdrv", 0), loaded("ext4", 3)});
  EXPECT_TRUE(order.possible());
  EXPECT_THAT(order.modules, ElementsAre("gdrdrv", "nvidia_fs", "nvidia_peermem", "nvidia_drm",
                                         "nvidia_uvm", "nvidia_modeset", "nvidia"));
}

TEST(UnloadOrder, FollowsTheKernelWhereItKnowsMore) {
  // Here nvidia_uvm uses nvidia_peermem, which the table does not say.
  const auto order =
      unload_order({loaded("nvidia", 2, {"nvidia_uvm", "nvidia_peermem"}),
                    loaded("nvidia_peermem", 1, {"nvidia_uvm"}), loaded("nvidia_uvm", 0)});
  EXPECT_THAT(order.modules, ElementsAre("nvidia_uvm", "nvidia_peermem", "nvidia"));
}

TEST(UnloadOrder, NamesTheModuleThatIsNotTheDrivers) {
  const auto order = unload_order({loaded("nvidia", 2, {"nvidia_uvm", "nv_peer_mem"}),
                                   loaded("nvidia_uvm", 0), loaded("nv_peer_mem", 0)});
  EXPECT_THAT(order.blockers,
              ElementsAre(UnloadBlocker{.reason = UnloadBlocker::Reason::ForeignModule,
                                        .module = "nvidia",
                                        .users = {"nv_peer_mem"}}));
  EXPECT_EQ(describe(order.blockers[0]), "module nvidia is used by the module nv_peer_mem");
}

TEST(UnloadOrder, CountsWhatHoldsAModuleBesidesModules) {
  const auto order = unload_order({loaded("nvidia", 12, {"nvidia_uvm"}), loaded("nvidia_uvm", 1)});
  ASSERT_EQ(order.blockers.size(), 2U);
  EXPECT_EQ(order.blockers[0], (UnloadBlocker{.reason = UnloadBlocker::Reason::References,
                                              .module = "nvidia_uvm",
                                              .references = 1}));
  EXPECT_EQ(order.blockers[1].references, 11);
  EXPECT_EQ(describe(order.blockers[0]),
            "module nvidia_uvm is held by an open device file or by the console");
  EXPECT_EQ(describe(order.blockers[1]),
            "module nvidia is held 11 times by open device files or by the console");
}

TEST(UnloadOrder, SaysWhenTheKernelCannotUnload) {
  auto permanent = loaded("nvidia", 0);
  permanent.permanent = true;
  auto loading = loaded("nvidia", 0);
  loading.state = "Loading";
  using Reason = UnloadBlocker::Reason;
  EXPECT_EQ(unload_order({permanent}).blockers.at(0).reason, Reason::Permanent);
  EXPECT_EQ(unload_order({loaded("nvidia", -1)}).blockers.at(0).reason, Reason::Permanent);
  EXPECT_EQ(unload_order({loading}).blockers.at(0).reason, Reason::Changing);
}

TEST(UnloadOrder, IsEmptyWithoutTheDriver) {
  EXPECT_THAT(unload_order({loaded("ext4", 1), loaded("nvidiafb", 1)}).modules, IsEmpty());
}

TEST(UnloadOrder, EndsForUsersInACircle) {
  const auto order =
      unload_order({loaded("nvidia", 1, {"nvidia_uvm"}), loaded("nvidia_uvm", 1, {"nvidia"})});
  EXPECT_EQ(order.modules.size(), 2U);
}

}  // namespace
}  // namespace gantry::kernel_module
