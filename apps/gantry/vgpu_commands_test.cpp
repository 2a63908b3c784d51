// SPDX-License-Identifier: Apache-2.0
#include "gantry/vgpu_commands.hpp"

#include "sim/machine/vgpu_sysfs.hpp"
#include "support/machine.hpp"
#include "support/parsed_json.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <stdlib.h>

#include <gmock/gmock.h>

namespace gantry::cli {
namespace {

using test::run_cli;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kConfig = R"(version: v1
vgpu-configs:
  default:
    - devices: all
      vgpu-devices: {}
  small:
    - devices: [0]
      vgpu-devices: {A10-4Q: 2}
  mixed:
    - devices: [1]
      vgpu-devices: {A10-12Q: 1, A10-4Q: 1}
  wrong:
    - devices: all
      vgpu-devices: {A10-5Q: 1}
)";

class VgpuCommands : public ::testing::Test {
 protected:
  VgpuCommands() { tree_.file("vgpu.yaml", kConfig); }

  test::CliResult vgpu(std::vector<std::string> words) {
    words.insert(words.begin(), {"gantry", "vgpu"});
    words.insert(words.end(), {"--root", machine_.root()});
    return run_cli(words);
  }
  std::string config() const { return tree_.path("vgpu.yaml"); }

  test::Tree tree_;
  test::Machine machine_{"vgpu-a10"};
};

TEST_F(VgpuCommands, CreateListAndRemove) {
  const auto made = vgpu({"create", "A10-4Q", "--gpu", "0", "--count", "2"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("enable 16 virtual functions of 0000:3b:00.0"),
                              HasSubstr("create A10-4Q")));
  const auto listed = vgpu({"list"});
  EXPECT_THAT(listed.out, AllOf(HasSubstr("mdev on virtual functions"), HasSubstr("16 of 16"),
                                HasSubstr("0000:3b:00.5"), HasSubstr("/dev/vfio/")));
  const auto types = vgpu({"types", "--gpu", "0000:3b:00.0"});
  EXPECT_THAT(types.out, AllOf(HasSubstr("nvidia-592"), HasSubstr("4096 MiB"), HasSubstr("4")));
  EXPECT_THAT(types.out, Not(HasSubstr("0000:af:00.0")));
  ASSERT_EQ(vgpu({"remove", "--all"}).status, 0);
  EXPECT_THAT(vgpu({"list"}).out, Not(HasSubstr("A10-4Q")));
}

TEST_F(VgpuCommands, JsonHasTypesAndVgpus) {
  ASSERT_EQ(vgpu({"create", "A10-8Q", "--gpu", "0"}).status, 0);
  const auto json = test::parsed(vgpu({"list", "--json"}).out);
  const auto gpu = json["gpus"].element(0);
  EXPECT_EQ(gpu["framework"].string(), "mdev-vf");
  EXPECT_EQ(gpu["deviceFilter"].string(), "0x223610DE");
  EXPECT_EQ(gpu["vgpus"].element(0)["type"].string(), "A10-8Q");
  EXPECT_EQ(json["gpus"].element(1)["framework"].string(), "vfs-off");
  EXPECT_TRUE(json["interrupted"].is(json::Kind::Null));
}

TEST_F(VgpuCommands, ApplyAndAssertANamedSet) {
  EXPECT_EQ(vgpu({"assert", "-f", config(), "-c", "small"}).status, 1);
  const auto dry = vgpu({"apply", "-f", config(), "-c", "small", "--dry-run"});
  EXPECT_EQ(dry.status, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("would enable 16 virtual functions"));
  ASSERT_EQ(vgpu({"apply", "-f", config(), "-c", "small"}).status, 0);
  EXPECT_EQ(vgpu({"assert", "-f", config(), "-c", "small"}).status, 0);
  ASSERT_EQ(vgpu({"apply", "-f", config(), "-c", "mixed"}).status, 0);
  EXPECT_EQ(vgpu({"assert", "-f", config(), "-c", "mixed"}).status, 0);
  EXPECT_EQ(vgpu({"assert", "-f", config(), "-c", "small"}).status, 0) << "GPU 0 was left alone";
  ASSERT_EQ(vgpu({"apply", "-f", config()}).status, 0) << "default: no vGPUs";
  EXPECT_EQ(vgpu({"assert", "-f", config(), "-c", "small"}).status, 1);
}

TEST_F(VgpuCommands, RestoreAfterAReboot) {
  ASSERT_EQ(vgpu({"apply", "-f", config(), "-c", "small"}).status, 0);
  ASSERT_TRUE(sim::reboot_vgpu_host(machine_.root()).ok());
  EXPECT_EQ(vgpu({"assert", "-f", config(), "-c", "small"}).status, 1);
  const auto restored = vgpu({"apply", "--restore"});
  EXPECT_EQ(restored.status, 0) << restored.err;
  EXPECT_EQ(vgpu({"assert", "-f", config(), "-c", "small"}).status, 0);
}

TEST_F(VgpuCommands, ErrorsSayWhatToType) {
  const auto several = vgpu({"create", "A10-4Q"});
  EXPECT_EQ(several.status, 1);
  EXPECT_THAT(several.err, AllOf(HasSubstr("2 GPUs"), HasSubstr("--gpu INDEX"),
                                 HasSubstr("gantry vgpu list --root " + machine_.root())));
  EXPECT_THAT(vgpu({"create", "A10-4Q", "--gpu", "7"}).err, HasSubstr("there is no GPU 7"));
  EXPECT_THAT(vgpu({"create", "A10-5Q", "--gpu", "0"}).err, HasSubstr("has no vGPU type A10-5Q"));
  EXPECT_THAT(vgpu({"create", "A10-4Q", "--gpu", "0", "--count", "7"}).err,
              HasSubstr("at most 6 fit"));
  EXPECT_THAT(vgpu({"create", "A10-4Q", "--gpu", "0", "--uuid", "abc"}).err,
              HasSubstr("`abc` is not a UUID"));
  EXPECT_THAT(vgpu({"remove", "83b8f4f2-509f-482f-8c1e-e6bfe0fa1001"}).err,
              HasSubstr("there is no vGPU 83b8f4f2"));
  EXPECT_THAT(vgpu({"remove"}).err, HasSubstr("name the vGPUs to remove"));
  EXPECT_THAT(vgpu({"apply", "-f", config(), "-c", "large"}).err, HasSubstr("has no set `large`"));
  EXPECT_THAT(vgpu({"apply", "-f", config(), "-c", "wrong"}).err, HasSubstr("no vGPU type A10-5Q"));
  EXPECT_THAT(vgpu({"apply"}).err, HasSubstr("-f"));
  EXPECT_THAT(vgpu({"apply", "-f", config() + "x"}).err, HasSubstr("No such file"));
}

TEST_F(VgpuCommands, AnswerAsVgpuDeviceManager) {
  ::setenv("GANTRY_ROOT", machine_.root().c_str(), 1);
  const auto dm = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "nvidia-vgpu-dm");
    return run_cli(words);
  };
  EXPECT_EQ(dm({"assert", "-f", config(), "-c", "small"}).status, 1);
  EXPECT_EQ(dm({"-d", "apply", "-f", config(), "-c", "small"}).status, 0);
  EXPECT_EQ(dm({"assert", "--config-file", config(), "--selected-config", "small"}).status, 0);
  EXPECT_EQ(dm({"assert", "-a", "-f", config(), "-c", "mixed"}).status, 0);
  EXPECT_EQ(dm({"assert", "-a", "-f", config(), "-c", "none"}).status, 1);
  EXPECT_THAT(dm({"apply"}).err,
              HasSubstr("missing required flags 'config-file, selected-config'"));
  EXPECT_EQ(dm({"apply"}).status, 1);
  ::setenv("VGPU_DM_CONFIG_FILE", config().c_str(), 1);
  ::setenv("VGPU_DM_SELECTED_CONFIG", "small", 1);
  EXPECT_EQ(dm({"assert"}).status, 0);
  ::unsetenv("VGPU_DM_CONFIG_FILE");
  ::unsetenv("VGPU_DM_SELECTED_CONFIG");
  ::unsetenv("GANTRY_ROOT");
}

TEST(VgpuWithoutHostDriver, SaysWhatIsMissing) {
  const test::Machine machine("t4x4");
  const auto listed = run_cli({"gantry", "vgpu", "list", "--root", machine.root()});
  EXPECT_EQ(listed.status, 0);
  EXPECT_THAT(listed.out, HasSubstr("no module nvidia_vgpu_vfio"));
  const auto made =
      run_cli({"gantry", "vgpu", "create", "T4-8Q", "--gpu", "0", "--root", machine.root()});
  EXPECT_EQ(made.status, 1);
  EXPECT_THAT(made.err, AllOf(HasSubstr("GPU 0 (0000:3b:00.0) has no vGPUs"),
                              HasSubstr("gantry doctor --root")));
}

}  // namespace
}  // namespace gantry::cli
