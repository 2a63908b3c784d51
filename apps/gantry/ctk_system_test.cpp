// SPDX-License-Identifier: Apache-2.0
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::cli {
namespace {

using test::run_cli;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// nvidia-ctk has no --root; the environment names a machine in a directory.
class NvidiaCtkSystem : public testing::Test {
 protected:
  NvidiaCtkSystem() {
    tree_.file(
        "proc/devices",
        "Character devices:\n195 nvidia\n235 nvidia-caps\n238 nvidia-uvm\n\nBlock devices:\n");
    tree_.file("dev.table",
               "/dev/nvidia0 c 195 0 0666 0 0\n/dev/nvidiactl c 195 255 0666 0 0\n"
               "/dev/nvidia-fs0 c 240 0 0666 0 0\n/dev/nvidia-caps/nvidia-cap1 c 235 1 0400 0 0\n");
    ::setenv("GANTRY_ROOT", tree_.root().c_str(), 1);
  }
  ~NvidiaCtkSystem() override { ::unsetenv("GANTRY_ROOT"); }

  std::string link(const char* name) {
    return tree_.host().link(std::string("/dev/char/") + name).value_or("(absent)");
  }

  test::Tree tree_;
};

TEST_F(NvidiaCtkSystem, LinksTheNodesThatAreThere) {
  const auto run = run_cli({"nvidia-ctk", "system", "create-dev-char-symlinks"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(link("195:0"), "../nvidia0");
  EXPECT_EQ(link("195:255"), "../nvidiactl");
  EXPECT_EQ(link("235:1"), "../nvidia-caps/nvidia-cap1");
  EXPECT_EQ(link("240:0"), "(absent)");
  EXPECT_EQ(run_cli({"nvidia-ctk", "system", "create-dev-char-symlinks"}).status, 0);
}

TEST_F(NvidiaCtkSystem, LinksEverythingTheDriverCouldHave) {
  for (const auto* address : {"0000:17:00.0", "0000:2a:00.0"}) {
    const auto directory = std::string("sys/bus/pci/devices/") + address + "/";
    tree_.file(directory + "vendor", "0x10de\n").file(directory + "device", "0x2335\n");
    tree_.file(directory + "class", "0x030200\n");
  }
  tree_.file("proc/driver/nvidia-caps/mig-minors",
             "config 1\nmonitor 2\ngpu0/gi1/access 12\n"
             "gpu1/gi1/ci0/access 148\ngpu2/gi0/access 273\ngpu31/gi14/ci7/access 4322\n");
  const auto run =
      run_cli({"nvidia-ctk", "system", "create-dev-char-symlinks", "--create-all", "--dry-run"});
  ASSERT_EQ(run.status, 0) << run.err;
  for (const auto* part :
       {"ln -s ../nvidia1 ", "/dev/char/195:1\n", "ln -s ../nvidia-uvm-tools ", "/dev/char/238:1\n",
        "ln -s ../nvidia-caps/nvidia-cap12 ", "ln -s ../nvidia-caps/nvidia-cap148 "}) {
    EXPECT_THAT(run.out, HasSubstr(part));
  }
  // The driver lists the capabilities of 32 GPUs; this machine has two.
  EXPECT_THAT(run.out, AllOf(Not(HasSubstr("nvidia-cap273")), Not(HasSubstr("nvidia-cap4322"))));
  EXPECT_EQ(link("195:0"), "(absent)");
}

TEST_F(NvidiaCtkSystem, MakesTheControlNodesThatAreMissing) {
  const auto run = run_cli({"nvidia-ctk", "system", "create-device-nodes", "--control-devices",
                            "--load-kernel-modules", "--dry-run"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out,
              HasSubstr("modprobe nvidia\nmodprobe nvidia-uvm\nmodprobe nvidia-modeset\n"));
  EXPECT_THAT(run.out, HasSubstr("/dev/nvidia-uvm c 238 0\n"));
  EXPECT_THAT(run.out, HasSubstr("/dev/nvidia-modeset c 195 254\n"));
  EXPECT_THAT(run.out, Not(HasSubstr("/dev/nvidiactl")));
}

TEST_F(NvidiaCtkSystem, SaysThatTheDriverIsNotLoaded) {
  tree_.file("proc/devices", "Character devices:\n  1 mem\n");
  const auto run = run_cli({"nvidia-ctk", "system", "create-device-nodes", "--control-devices"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("is the driver loaded?"));
}

}  // namespace
}  // namespace gantry::cli
