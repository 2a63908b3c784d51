// SPDX-License-Identifier: Apache-2.0
#include "gpu/reset/reset.hpp"

#include "support/tree.hpp"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>

namespace gantry::reset {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const model::PciAddress first_card{.bus = 0x3b};
constexpr ResetTiming kQuick{.driver_appears = 50ms, .pause = 5ms};

// A tree that behaves as the kernel does when its files are written.
class KernelTree {
 public:
  KernelTree() {
    add_card("0000:3b:00.0", "GPU-aaaaaaaa-1", 0);
    add_card("0000:5e:00.0", "GPU-aaaaaaaa-2", 1);
  }

  sys::Host host() const { return tree_.host(); }
  test::Tree& tree() { return tree_; }

  WriteFile writer() {
    return [this](const std::string& path, const std::string& text) { return write(path, text); };
  }
  void fail(const std::string& path, Error error) { failures_.emplace(path, std::move(error)); }
  const std::vector<std::string>& written() const { return written_; }

  bool bound() const { return host().link(kDevice + "driver").ok(); }
  void unbind() {
    ::unlink(tree_.path("sys/bus/pci/devices/0000:3b:00.0/driver").c_str());
    tree_.remove("proc/driver/nvidia/gpus/0000:3b:00.0");
  }

  const std::string kDevice = "/sys/bus/pci/devices/0000:3b:00.0/";

 private:
  void add_card(const std::string& address, const std::string& uuid, int minor) {
    const auto device = "sys/bus/pci/devices/" + address + "/";
    tree_.file(device + "vendor", "0x10de\n").file(device + "device", "0x2335\n");
    tree_.file(device + "class", "0x030200\n")
        .file(device + "reset")
        .file(device + "reset_method", "flr bus\n");
    bind(address, uuid, minor);
  }
  void bind(const std::string& address, const std::string& uuid, int minor) {
    tree_.link("sys/bus/pci/devices/" + address + "/driver", "../../../../bus/pci/drivers/nvidia");
    tree_.file("proc/driver/nvidia/gpus/" + address + "/information",
               "GPU UUID: \t " + uuid + "\nDevice Minor: \t " + std::to_string(minor) + "\n");
  }
  Status write(const std::string& path, const std::string& text) {
    written_.push_back(text + " > " + path);
    if (const auto found = failures_.find(path); found != failures_.end()) return found->second;
    if (path == kDevice + "driver/unbind") unbind();
    if (path.ends_with("/nvidia/bind") || path.ends_with("drivers_probe"))
      bind("0000:3b:00.0", "GPU-aaaaaaaa-1", 0);
    return {};
  }

  test::Tree tree_;
  std::map<std::string, Error> failures_;
  std::vector<std::string> written_;
};

ResetPlan plan_of(const KernelTree& kernel) {
  auto plan = plan_reset(kernel.host(), first_card);
  EXPECT_TRUE(plan.ok()) << plan.error().text();
  return *plan;
}

TEST(FindGpu, ByAddressIndexAndUuid) {
  const KernelTree kernel;
  const auto find = [&](std::string_view name) {
    const auto found = find_gpu(kernel.host(), name);
    return found.ok() ? found->sysfs() : found.error().text();
  };
  EXPECT_EQ(find("0000:3b:00.0"), "0000:3b:00.0");
  EXPECT_EQ(find("3b:00.0"), "0000:3b:00.0");
  EXPECT_EQ(find("1"), "0000:5e:00.0");
  EXPECT_EQ(find("GPU-aaaaaaaa-2"), "0000:5e:00.0");
  EXPECT_THAT(find("GPU-aaaaaaaa"), HasSubstr("2 UUIDs"));
  EXPECT_THAT(find("2"), HasSubstr("there are 0000:3b:00.0, 0000:5e:00.0"));
  EXPECT_THAT(find("0000:77:00.0"), HasSubstr("no GPU `0000:77:00.0`"));
  EXPECT_THAT(find("\033[2J"), HasSubstr("\\x1b"));
}

TEST(PlanReset, SaysMethodDriverAndSteps) {
  const KernelTree kernel;
  const auto plan = plan_of(kernel);
  EXPECT_EQ(plan.method, "flr");
  EXPECT_EQ(plan.driver, "nvidia");
  EXPECT_TRUE(plan.rebind);
  EXPECT_THAT(plan.warnings, IsEmpty());
  EXPECT_THAT(describe_steps(plan),
              ElementsAre("write 0000:3b:00.0 to /sys/bus/pci/devices/0000:3b:00.0/driver/unbind",
                          "write 1 to /sys/bus/pci/devices/0000:3b:00.0/reset (flr)",
                          "write 0000:3b:00.0 to /sys/bus/pci/drivers/nvidia/bind"));
}

TEST(PlanReset, RefusesWhatTheKernelCannotDo) {
  KernelTree none;
  none.tree().remove("sys/bus/pci/devices/0000:3b:00.0/reset");
  EXPECT_EQ(plan_reset(none.host(), first_card).error().code(), Errc::Unsupported);
  KernelTree off;
  off.tree().file("sys/bus/pci/devices/0000:3b:00.0/reset_method", "\n");
  EXPECT_THAT(plan_reset(off.host(), first_card).error().remedy(), HasSubstr("echo default"));
  KernelTree vgpu;
  vgpu.tree().file("sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs", "16\n");
  EXPECT_EQ(plan_reset(vgpu.host(), first_card).error().code(), Errc::Busy);
  EXPECT_EQ(plan_reset(vgpu.host(), {.bus = 0x77}).error().code(), Errc::NotFound);
}

TEST(PlanReset, RefusesACardWithVgpus) {
  KernelTree kernel;
  kernel.tree().link(
      "sys/bus/pci/devices/0000:3b:00.0/83b8f4f2-509f-482f-8c1e-e6bfe0fa1001/mdev_type",
      "../mdev_supported_types/nvidia-222");
  const auto plan = plan_reset(kernel.host(), first_card);
  EXPECT_EQ(plan.error().code(), Errc::Busy);
  EXPECT_THAT(plan.error().remedy(), HasSubstr("vgpu remove --all --gpu 0000:3b:00.0"));
}

TEST(PlanReset, WarnsOfWhatIsLost) {
  KernelTree kernel;
  kernel.tree().directory("proc/driver/nvidia/capabilities/gpu0/mig/gi1");
  kernel.tree().file("sys/bus/pci/devices/0000:3b:00.0/reset_method", "bus\n");
  EXPECT_THAT(plan_of(kernel).warnings, ElementsAre(HasSubstr("MIG"), HasSubstr("bus")));
}

TEST(RunReset, UnbindsResetsAndBinds) {
  KernelTree kernel;
  const auto status = run_reset(kernel.host(), plan_of(kernel), kernel.writer(), kQuick);
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_THAT(kernel.written(),
              ElementsAre("0000:3b:00.0 > /sys/bus/pci/devices/0000:3b:00.0/driver/unbind",
                          "1 > /sys/bus/pci/devices/0000:3b:00.0/reset",
                          "0000:3b:00.0 > /sys/bus/pci/drivers/nvidia/bind"));
  EXPECT_TRUE(kernel.bound());
}

TEST(RunReset, DoesNothingIfTheDriverChangedSinceThePlan) {
  KernelTree kernel;
  const auto plan = plan_of(kernel);
  kernel.unbind();  // another command gave the card to a virtual machine
  kernel.tree().link("sys/bus/pci/devices/0000:3b:00.0/driver",
                     "../../../../bus/pci/drivers/vfio-pci");
  const auto status = run_reset(kernel.host(), plan, kernel.writer(), kQuick);
  EXPECT_EQ(status.error().code(), Errc::Busy);
  EXPECT_THAT(status.error().text(), HasSubstr("vfio-pci"));
  EXPECT_THAT(kernel.written(), IsEmpty());
}

TEST(RunReset, LeavesVfioBound) {
  KernelTree kernel;
  kernel.unbind();
  kernel.tree().link("sys/bus/pci/devices/0000:3b:00.0/driver",
                     "../../../../bus/pci/drivers/vfio-pci");
  const auto status = run_reset(kernel.host(), plan_of(kernel), kernel.writer(), kQuick);
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_THAT(kernel.written(), ElementsAre("1 > /sys/bus/pci/devices/0000:3b:00.0/reset"));
}

TEST(RunReset, FindsADriverForACardThatHasNone) {
  KernelTree kernel;
  kernel.unbind();  // a reset was killed here
  const auto status = run_reset(kernel.host(), plan_of(kernel), kernel.writer(), kQuick);
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_TRUE(kernel.bound());
}

TEST(RunReset, SaysThatNoDriverTookACardThatHasNone) {
  KernelTree kernel;
  kernel.unbind();  // a reset was killed here
  kernel.tree().file("sys/bus/pci/drivers/nvidia/bind");
  kernel.fail("/sys/bus/pci/drivers_probe", Error::sys(EIO, "write drivers_probe"));
  const auto status = run_reset(kernel.host(), plan_of(kernel), kernel.writer(), kQuick);
  EXPECT_EQ(status.error().code(), Errc::Unsupported);
  EXPECT_THAT(status.error().text(), HasSubstr("no driver took it"));
  kernel.tree().file("sys/bus/pci/devices/0000:3b:00.0/driver_override", "vfio-pci\n");
  EXPECT_TRUE(run_reset(kernel.host(), plan_of(kernel), kernel.writer(), kQuick).ok())
      << "it is reserved for another driver";
}

TEST(RunReset, BindsAgainWhenTheResetFails) {
  KernelTree kernel;
  kernel.fail(kernel.kDevice + "reset", Error::sys(EIO, "write reset"));
  const auto status = run_reset(kernel.host(), plan_of(kernel), kernel.writer(), kQuick);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::Unsupported) << "the GPU is as it was";
  EXPECT_THAT(status.error().text(), HasSubstr("resetting the GPU"));
  EXPECT_TRUE(kernel.bound());
}

TEST(RunReset, DoesNothingMoreAfterAWriteThatHangs) {
  KernelTree kernel;
  kernel.fail(kernel.kDevice + "driver/unbind", Error(Errc::Timeout, "stuck in the kernel"));
  const auto status = run_reset(kernel.host(), plan_of(kernel), kernel.writer(), kQuick);
  EXPECT_EQ(status.error().code(), Errc::Timeout);
  EXPECT_EQ(kernel.written().size(), 1U);
}

TEST(RunReset, SaysThatTheGpuDidNotComeBack) {
  KernelTree kernel;
  kernel.fail("/sys/bus/pci/drivers/nvidia/bind", Error::sys(ENODEV, "write bind"));
  const auto status = run_reset(kernel.host(), plan_of(kernel), kernel.writer(), kQuick);
  EXPECT_EQ(status.error().code(), Errc::Internal);
  EXPECT_THAT(status.error().text(), HasSubstr("binding 0000:3b:00.0 to nvidia again"));
}

}  // namespace
}  // namespace gantry::reset
