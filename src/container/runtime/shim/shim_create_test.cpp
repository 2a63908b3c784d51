// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/shim/shim_create.hpp"

#include "base/json/document.hpp"
#include "container/runtime/injection/container_record.hpp"
#include "container/runtime/injection/ready_machine_for_test.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gantry::runtime {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Create : public ::testing::Test {
 protected:
  // A bundle whose process has these variables; more members of config.json after it.
  void bundle(const std::vector<std::string>& env, const std::string& more = "") {
    std::string list;
    for (const auto& entry : env) list += (list.empty() ? "" : ",") + json::quote(entry);
    tree_.file("b/config.json", R"({"ociVersion":"1.0.2","process":{"env":[)" + list +
                                    R"(],"user":{"uid":1000})" +
                                    (may_make_nodes_ ? kMakesNodes : "") +
                                    R"(},"root":{"path":"rootfs"})" + more + "}");
    tree_.file("b/rootfs/lib64/ld-linux-x86-64.so.2").directory("b/rootfs/etc");
  }

  Result<CreateResult> create(ShimMode mode = ShimMode::Inject) {
    const CommandLine line{.command = "create", .id = "c1", .bundle = tree_.path("b")};
    const auto host = ready_.host();
    return prepare_create({.line = line,
                           .surroundings = {host, settings_,
                                            [this]() -> Status {
                                              ++refreshes_;
                                              return Error(Errc::Internal, "refused");
                                            }},
                           .mode = mode,
                           .low_level = "/usr/bin/runc"});
  }

  std::filesystem::path executable(const std::string& path) {
    tree_.file(path);
    EXPECT_EQ(::chmod(tree_.path(path).c_str(), 0755), 0);
    return tree_.path(path);
  }
  json::Document config() const {
    return *json::Document::parse(*tree_.host().read("/b/config.json"));
  }
  std::vector<std::string> members(json::Value array, std::string_view member) const {
    std::vector<std::string> result;
    for (const auto element : array) result.push_back(element[member].string().value_or(""));
    return result;
  }

  static constexpr const char* kMakesNodes = R"(,"capabilities":{"bounding":["CAP_MKNOD"]})";
  bool may_make_nodes_ = false;
  ReadyMachine ready_;
  test::Tree tree_;
  config::Settings settings_;
  int refreshes_ = 0;
};

TEST_F(Create, GivesTheGpuThatWasAskedFor) {
  bundle({"NVIDIA_VISIBLE_DEVICES=0", "PATH=/bin"});
  const auto created = create();
  ASSERT_TRUE(created.ok()) << created.error().text();
  EXPECT_TRUE(created->changed);
  const auto edited = config();
  EXPECT_THAT(
      members(edited["linux"]["devices"], "path"),
      ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia0"));
  EXPECT_THAT(edited["linux"]["resources"]["devices"].size(), 4);
  EXPECT_THAT(edited["process"]["env"].strings(), Contains("NVIDIA_VISIBLE_DEVICES=void"));
  EXPECT_EQ(edited["process"]["user"]["additionalGids"].raw(), "[44]");
  EXPECT_THAT(members(edited["mounts"], "destination"), Contains("/usr/local/nvidia/lib64"));
  EXPECT_EQ(refreshes_, 0);
}

TEST_F(Create, TheImagesCacheIsMerged) {
  bundle({"NVIDIA_VISIBLE_DEVICES=0"});
  ASSERT_TRUE(create().ok());
  EXPECT_THAT(*tree_.host().read("/b/rootfs/etc/ld.so.cache"),
              HasSubstr("/usr/local/nvidia/lib64/libcuda.so.1"));
  EXPECT_THAT(*tree_.host().read("/b/rootfs/etc/ld.so.conf.d/00-gantry.conf"),
              HasSubstr("/usr/local/nvidia/lib64"));
  EXPECT_EQ(read_container_record(ready_.host(), "c1")->flavour, "shim");
}

TEST_F(Create, WhereTheCacheCannotBeChangedTheLoadersOwnPlacesAreMounted) {
  bundle({"NVIDIA_VISIBLE_DEVICES=0"});
  tree_.directory("b/rootfs/etc/ld.so.cache");
  ASSERT_TRUE(create().ok());
  EXPECT_THAT(members(config()["mounts"], "destination"),
              Contains("/usr/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v2"));
  const auto record = read_container_record(ready_.host(), "c1");
  EXPECT_EQ(record->flavour, "no-hooks");
  EXPECT_THAT(record->notes, Contains(HasSubstr("loader cache is unchanged")));
}

TEST_F(Create, NothingAskedForLeavesTheFileAlone) {
  bundle({"NVIDIA_VISIBLE_DEVICES=void"});
  const auto before = *tree_.host().read("/b/config.json");
  const auto created = create();
  ASSERT_TRUE(created.ok());
  EXPECT_FALSE(created->changed);
  EXPECT_EQ(*tree_.host().read("/b/config.json"), before);
  EXPECT_FALSE(tree_.host().exists("/b/rootfs/etc/ld.so.cache"));
}

TEST_F(Create, TwiceIsAsGoodAsOnce) {
  bundle({"NVIDIA_VISIBLE_DEVICES=all"});
  ASSERT_TRUE(create().ok());
  const auto once = *tree_.host().read("/b/config.json");
  ASSERT_TRUE(create().ok());
  EXPECT_EQ(*tree_.host().read("/b/config.json"), once);
}

TEST_F(Create, NoneGivesTheDriverAndNoGpu) {
  bundle({"NVIDIA_VISIBLE_DEVICES=none"});
  ASSERT_TRUE(create().ok());
  EXPECT_THAT(members(config()["linux"]["devices"], "path"), Not(Contains(HasSubstr("nvidia0"))));
  EXPECT_THAT(members(config()["mounts"], "destination"), Contains("/usr/local/nvidia/lib64"));
}

TEST_F(Create, AMigInstanceByItsUuidBringsItsCapabilities) {
  bundle({std::string("NVIDIA_VISIBLE_DEVICES=") + ReadyMachine::kMig});
  ASSERT_TRUE(create().ok());
  EXPECT_THAT(
      members(config()["linux"]["devices"], "path"),
      ElementsAre("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia1",
                  "/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"));
}

TEST_F(Create, AWrongIdIsLookedForOnceMoreThenRefused) {
  bundle({"NVIDIA_VISIBLE_DEVICES=7"});
  const auto before = *tree_.host().read("/b/config.json");
  const auto created = create();
  ASSERT_FALSE(created.ok());
  EXPECT_THAT(created.error().text(), HasSubstr("7"));
  EXPECT_EQ(refreshes_, 1);
  EXPECT_EQ(*tree_.host().read("/b/config.json"), before);
}

TEST_F(Create, RequirementsHoldInEveryMode) {
  bundle({"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0", "NVIDIA_REQUIRE_CUDA=cuda>=99.0"});
  const auto created = create();
  ASSERT_FALSE(created.ok());
  EXPECT_THAT(created.error().text(), HasSubstr("99.0"));
}

TEST_F(Create, WithoutAnInventoryMigAndRequirementsNameTheCommand) {
  ready_.tree().remove("run/gantry/inventory.json");
  bundle({std::string("NVIDIA_VISIBLE_DEVICES=") + ReadyMachine::kMig});
  EXPECT_THAT(create().error().text(), HasSubstr("run `gantry cdi refresh`"));
  bundle({"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_REQUIRE_CUDA=cuda>=12.0"});
  EXPECT_THAT(create().error().text(), HasSubstr("run `gantry cdi refresh`"));
  bundle({"NVIDIA_VISIBLE_DEVICES=0"});
  const auto created = create();
  ASSERT_TRUE(created.ok()) << created.error().text();
  EXPECT_THAT(members(config()["linux"]["devices"], "path"), Contains("/dev/nvidia0"));
}

TEST_F(Create, APodWithoutAGrantGetsNothingAndTheLogSaysWhy) {
  const std::string pod = R"(,"annotations":{"io.kubernetes.cri.sandbox-uid":"u1",)"
                          R"("io.kubernetes.cri.container-name":"main"})";
  bundle({"NVIDIA_VISIBLE_DEVICES=all"}, pod);
  const auto refused = create();
  ASSERT_TRUE(refused.ok());
  EXPECT_FALSE(refused->changed);
  EXPECT_THAT(refused->warnings, SizeIs(1));
  ready_.tree().file("run/gantry/grants/u1/main/grant.json",
                     R"({"devices":[")" + ReadyMachine::uuid(0) + R"("]})");
  ASSERT_TRUE(create().ok());
  EXPECT_THAT(members(config()["linux"]["devices"], "path"), Contains("/dev/nvidia0"));
}

TEST_F(Create, APodsNameIsNoWayOutOfTheGrants) {
  ready_.tree().file("run/gantry/grant.json",
                     R"({"devices":[")" + ReadyMachine::uuid(0) + R"("]})");
  bundle({"NVIDIA_VISIBLE_DEVICES=all"}, R"(,"annotations":{"io.kubernetes.cri.sandbox-uid":"..",)"
                                         R"("io.kubernetes.cri.container-name":"."})");
  const auto created = create();
  ASSERT_TRUE(created.ok());
  EXPECT_FALSE(created->changed);
}

TEST_F(Create, AGrantThatOthersMayChangeGivesNothingAndSaysWhy) {
  const std::string grant = "run/gantry/grants/u1/main/grant.json";
  ready_.tree().file(grant, R"({"devices":[")" + ReadyMachine::uuid(0) + R"("]})");
  ASSERT_EQ(::chmod(ready_.tree().path(grant).c_str(), 0666), 0);
  bundle({"NVIDIA_VISIBLE_DEVICES=all"}, R"(,"annotations":{"io.kubernetes.cri.sandbox-uid":"u1",)"
                                         R"("io.kubernetes.cri.container-name":"main"})");
  const auto created = create();
  ASSERT_TRUE(created.ok()) << created.error().text();
  EXPECT_FALSE(created->changed);
  EXPECT_THAT(created->warnings, ElementsAre(HasSubstr("chmod go-w " + ready_.tree().path(grant))));
}

TEST_F(Create, HooksOfTheClassicChainGoEvenWhenNothingIsAskedFor) {
  bundle({}, R"(,"hooks":{"prestart":[{"path":"/usr/bin/nvidia-container-runtime-hook"}]})");
  ASSERT_TRUE(create().ok());
  EXPECT_THAT(config()["hooks"]["prestart"].size(), 0);
}

TEST_F(Create, LegacyModeLeavesItToTheHook) {
  bundle({"NVIDIA_VISIBLE_DEVICES=0"});
  ASSERT_TRUE(create(ShimMode::Classic).ok());
  EXPECT_THAT(members(config()["hooks"]["prestart"], "path"),
              ElementsAre(HasSubstr("nvidia-container-runtime-hook")));
  EXPECT_FALSE(config()["linux"]["devices"]);
}

TEST_F(Create, NumbersComeFromTheNodesNotFromTheInventory) {
  for (auto& node : ready_.inventory().nodes) node.major = 1;
  ready_.write_inventory();
  bundle({"NVIDIA_VISIBLE_DEVICES=0"});
  ASSERT_TRUE(create().ok());
  const auto edited = config();
  for (const auto device : edited["linux"]["devices"]) EXPECT_NE(device["major"].u64(), 1);
}

TEST_F(Create, GroupsComeFromTheNodesToo) {
  for (auto& node : ready_.inventory().nodes) node.gid = 0;
  ready_.write_inventory();
  bundle({"NVIDIA_VISIBLE_DEVICES=0"});
  ASSERT_TRUE(create().ok());
  EXPECT_EQ(config()["process"]["user"]["additionalGids"].raw(), "[44]");
  settings_.features.no_additional_gids_for_device_nodes = true;
  bundle({"NVIDIA_VISIBLE_DEVICES=0"});
  ASSERT_TRUE(create().ok());
  EXPECT_FALSE(config()["process"]["user"]["additionalGids"]);
}

TEST_F(Create, DevicesOfOtherVendorsComeFromTheirSpecifications) {
  ready_.tree().file("etc/cdi/acme.yaml",
                     "cdiVersion: 0.5.0\nkind: acme.org/nic\ndevices:\n- name: a\n"
                     "  containerEdits:\n    env: [ACME=1]\n    deviceNodes:\n"
                     "    - path: /dev/nvidia1\n      permissions: rw\n");
  bundle({"NVIDIA_VISIBLE_DEVICES=acme.org/nic=a"});
  const auto refused = create();
  ASSERT_TRUE(refused.ok()) << refused.error().text();
  EXPECT_FALSE(refused->changed);
  EXPECT_THAT(refused->warnings, ElementsAre(HasSubstr("cdi-kinds")));
  settings_.gantry.cdi_kinds = {"acme.org/nic"};
  const auto created = create();
  ASSERT_TRUE(created.ok()) << created.error().text();
  EXPECT_THAT(config()["process"]["env"].strings(), Contains("ACME=1"));
  EXPECT_THAT(members(config()["linux"]["devices"], "path"), ElementsAre("/dev/nvidia1"));
  EXPECT_EQ(config()["linux"]["devices"].element(0)["minor"].u64(), 1);
  bundle({"NVIDIA_VISIBLE_DEVICES=acme.org/nic=b"});
  EXPECT_THAT(create().error().text(), HasSubstr("acme.org/nic=b"));
}

TEST_F(Create, FlagsAndHooksOfTheTableJitCdiCount) {
  settings_.runtime.jit_cdi_feature_flags = {"no-additional-gids-for-device-nodes"};
  settings_.runtime.jit_cdi_disable_hooks = {"update-ldcache"};
  bundle({"NVIDIA_VISIBLE_DEVICES=0"});
  ASSERT_TRUE(create().ok());
  EXPECT_FALSE(config()["process"]["user"]["additionalGids"]);
  EXPECT_EQ(read_container_record(ready_.host(), "c1")->flavour, "no-hooks");
}

TEST_F(Create, TheHookIsBesideTheNvidiaCtkOfTheConfiguration) {
  settings_.gantry.flavour = "one-hook";
  settings_.ctk_path = executable("bin/nvidia-cdi-hook").replace_filename("nvidia-ctk");
  bundle({"NVIDIA_VISIBLE_DEVICES=0"});
  ASSERT_TRUE(create().ok());
  EXPECT_THAT(members(config()["hooks"]["createContainer"], "path"),
              ElementsAre(tree_.path("bin/nvidia-cdi-hook")));
}

TEST_F(Create, TheClassicHookIsTheOneOfTheConfiguration) {
  settings_.hook.path = executable("bin/hook");
  bundle({"NVIDIA_VISIBLE_DEVICES=0"});
  ASSERT_TRUE(create(ShimMode::Classic).ok());
  EXPECT_THAT(members(config()["hooks"]["prestart"], "path"), ElementsAre(tree_.path("bin/hook")));
  tree_.remove("bin/hook");
  bundle({"NVIDIA_VISIBLE_DEVICES=0"});
  ASSERT_TRUE(create(ShimMode::Classic).ok());
  EXPECT_THAT(members(config()["hooks"]["prestart"], "path"),
              ElementsAre(HasSubstr("/nvidia-container-runtime-hook")))
      << "one that is not there is not waited for";
}

TEST_F(Create, TellsALogWhoAskedAndWhatWasDecided) {
  bundle({"NVIDIA_VISIBLE_DEVICES=0"});
  const auto created = create();
  ASSERT_TRUE(created.ok());
  EXPECT_THAT(created->details, Contains("environment: NVIDIA_VISIBLE_DEVICES=0"));
  EXPECT_THAT(created->details, Contains(HasSubstr("environment counts")));
}

TEST_F(Create, NamesOfOurKindThatOnlyASpecificationHasComeFromThere) {
  ready_.tree().file("etc/cdi/theirs.yaml",
                     "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: pool\n"
                     "  containerEdits:\n    env: [POOL=1]\n    deviceNodes:\n"
                     "    - path: /dev/nvidia1\n      permissions: rw\n");
  bundle({"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=pool"});
  const auto created = create();
  ASSERT_TRUE(created.ok()) << created.error().text();
  EXPECT_THAT(config()["process"]["env"].strings(), Contains("POOL=1"));
  EXPECT_THAT(members(config()["linux"]["devices"], "path"), ElementsAre("/dev/nvidia1"));
  bundle({"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=gpu0"});
  ASSERT_TRUE(create().ok());
  EXPECT_THAT(members(config()["linux"]["devices"], "path"), Contains("/dev/nvidia0"));
}

constexpr const char* kSpecification =
    "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ncontainerEdits:\n  deviceNodes:\n"
    "  - path: /dev/nvidiactl\ndevices:\n- name: \"0\"\n  containerEdits:\n"
    "    deviceNodes:\n    - path: /dev/nvidia0\n    - path: /dev/nvidia-caps/nvidia-cap12\n";

TEST_F(Create, ACdiNameMeansItsSpecification) {
  ready_.tree().file("var/run/cdi/nvidia.yaml", kSpecification);
  const auto nodes = ElementsAre("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap12");
  bundle({"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0", "NVIDIA_DRIVER_CAPABILITIES=utility"});
  ASSERT_TRUE(create().ok());
  EXPECT_THAT(members(config()["linux"]["devices"], "path"), nodes);
  bundle({}, R"(,"annotations":{"cdi.k8s.io/a":"nvidia.com/gpu=0"})");
  ASSERT_TRUE(create().ok());
  EXPECT_THAT(members(config()["linux"]["devices"], "path"), nodes);
  EXPECT_EQ(refreshes_, 0);
  bundle({"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_DRIVER_CAPABILITIES=utility"});
  ASSERT_TRUE(create().ok());
  EXPECT_THAT(members(config()["linux"]["devices"], "path"),
              ElementsAre("/dev/nvidiactl", "/dev/nvidia0"));
}

TEST_F(Create, ACdiNameThatNoSpecificationHasIsPlannedLikeOne) {
  bundle({"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0", "NVIDIA_DRIVER_CAPABILITIES=utility"});
  ASSERT_TRUE(create().ok());
  EXPECT_EQ(refreshes_, 1);
  EXPECT_THAT(members(config()["linux"]["devices"], "path"), Contains("/dev/nvidia-uvm"));
}

TEST_F(Create, TheRequirementsOfAnImageHoldForCdiNames) {
  ready_.tree().file("var/run/cdi/nvidia.yaml", kSpecification);
  bundle({"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0", "NVIDIA_REQUIRE_CUDA=cuda>=99.0"});
  const auto created = create();
  ASSERT_FALSE(created.ok());
  EXPECT_THAT(created.error().text(), HasSubstr("99.0"));
}

TEST_F(Create, ADeviceGroupThatTheMachineLacksIsAWarning) {
  bundle({"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_GDS=enabled", "NVIDIA_MOFED=enabled"});
  const auto created = create();
  ASSERT_TRUE(created.ok()) << created.error().text();
  EXPECT_THAT(created->warnings,
              ElementsAre(HasSubstr("GPUDirect Storage was requested, but this machine has no "
                                    "/dev/nvidia-fs*; to load its module run `modprobe nvidia-fs`"),
                          HasSubstr("InfiniBand was requested")));
  EXPECT_EQ(refreshes_, 0);
  EXPECT_THAT(members(config()["linux"]["devices"], "path"), Contains("/dev/nvidia0"));
}

TEST_F(Create, AContainerThatMayCreateNodesGetsTheHookAgainstIt) {
  ready_.tree().file("proc/driver/nvidia/params", "ModifyDeviceFiles: 1\n");
  const auto arguments = [&] {
    bundle({"NVIDIA_VISIBLE_DEVICES=0"});
    EXPECT_TRUE(create().ok());
    const auto edited = config();
    std::vector<std::string> words;
    for (const auto hook : edited["hooks"]["createContainer"]) {
      const auto more = hook["args"].strings();
      words.insert(words.end(), more.begin(), more.end());
    }
    return words;
  };
  EXPECT_THAT(arguments(), SizeIs(0)) << "without CAP_MKNOD nothing can be created";
  may_make_nodes_ = true;
  EXPECT_THAT(arguments(), Contains("disable-device-node-modification"));
  settings_.runtime.jit_cdi_disable_hooks = {"disable-device-node-modification"};
  EXPECT_THAT(arguments(), SizeIs(0)) << "disabled";
  settings_ = {};
  ready_.tree().file("proc/driver/nvidia/params", "ModifyDeviceFiles: 0\n");
  EXPECT_THAT(arguments(), SizeIs(0)) << "the driver's libraries create none";
}

TEST(ConfigPath, FollowsBundleAndCrunsConfig) {
  EXPECT_EQ(config_path_of({.bundle = "/b"}), "/b/config.json");
  EXPECT_EQ(config_path_of({.bundle = "/b", .config = "other.json"}), "/b/other.json");
  EXPECT_EQ(config_path_of({.bundle = "/b", .config = "/c/x.json"}), "/c/x.json");
}

}  // namespace
}  // namespace gantry::runtime
