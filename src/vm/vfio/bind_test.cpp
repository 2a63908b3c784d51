// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/bind.hpp"

#include "base/core/text.hpp"
#include "vm/vfio/host_for_test.hpp"
#include "vm/vfio/journal.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace gantry::vfio {
namespace {

using test_host::at;
using test_host::bind_gpu;
using test_host::Fault;
using test_host::is_bound;
using test_host::kGpu;
using test_host::kSound;
using test_host::kTwin;
using test_host::release_gpu;
using test_host::Script;
using test_host::scripted_effects;
using test_host::SimulatedKill;
using test_host::TestHost;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kSwitch = "0000:c1:00.0";

std::vector<std::string> sysfs_writes(const Script& script) {
  std::vector<std::string> writes;
  for (const auto& entry : script.log) {
    if (entry.starts_with("write ") || entry.starts_with("modprobe ") || entry.starts_with("run "))
      writes.push_back(entry);
  }
  return writes;
}

TEST(Bind, OverridesBeforeItUnbindsAndUnbindsTheGpuLast) {
  TestHost machine;
  Script script;
  const auto bound = bind_gpu(machine, script);
  ASSERT_TRUE(bound.ok()) << bound.error().text();
  EXPECT_THAT(bound->notes, IsEmpty());
  EXPECT_TRUE(is_bound(machine));
  EXPECT_EQ(machine.driver(kTwin), "nvidia");
  EXPECT_FALSE(machine.has_journal());
  EXPECT_TRUE(machine.host().exists("/dev/vfio/12"));
  const std::string d = "write /sys/bus/pci/devices/";
  EXPECT_THAT(
      sysfs_writes(script),
      ElementsAre("modprobe vfio_pci", d + kSound + "/driver_override vfio-pci",
                  d + kGpu + "/driver_override vfio-pci", d + kSound + "/driver/unbind " + kSound,
                  d + kGpu + "/driver/unbind " + kGpu,
                  "write /sys/bus/pci/drivers/vfio-pci/bind " + std::string(kGpu),
                  "write /sys/bus/pci/drivers/vfio-pci/bind " + std::string(kSound),
                  d + kSound + "/power/control on", d + kGpu + "/power/control on"));
}

TEST(Bind, NeverWritesNewId) {
  TestHost machine;
  Script script;
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  ASSERT_TRUE(release_gpu(machine, script).ok());
  for (const auto& entry : script.log) EXPECT_THAT(entry, Not(HasSubstr("new_id")));
}

TEST(Bind, TwiceChangesNothing) {
  TestHost machine;
  Script script;
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  const auto count = script.count;
  const auto again = bind_gpu(machine, script);
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_FALSE(again->changed());
  EXPECT_EQ(script.count, count);
}

TEST(Release, GivesTheOldDriversBackAndLeavesNoTrace) {
  TestHost machine;
  const auto before = machine.bindings();
  Script script;
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  const auto released = release_gpu(machine, script);
  ASSERT_TRUE(released.ok()) << released.error().text();
  EXPECT_EQ(machine.bindings(), before);
  EXPECT_THAT(*read_bound(machine.host()), IsEmpty());
  EXPECT_FALSE(machine.has_journal());
  EXPECT_FALSE(machine.host().exists("/dev/vfio/12"));
}

// bind A, then bind A B: the way back of A must not be lost.
TEST(Bind, OfAnotherGpuKeepsTheWayBackOfTheOnesThatAreBound) {
  TestHost machine;
  const auto before = machine.bindings();
  Script script;
  const auto host = machine.host();
  const auto effects = scripted_effects(host, script);
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  const auto both = bind(host, {.targets = {at(kGpu), at(kTwin)}}, {}, effects);
  ASSERT_TRUE(both.ok()) << both.error().text();
  EXPECT_THAT(both->targets, ElementsAre(at(kGpu), at(kTwin)));
  ASSERT_TRUE(release(host, {at(kTwin)}, {}, effects).ok());
  ASSERT_TRUE(release_gpu(machine, script).ok());
  EXPECT_EQ(machine.bindings(), before);
}

TEST(Bind, OfOneFunctionThatSomeoneTookKeepsTheWayBackOfTheOthers) {
  TestHost machine;
  const auto before = machine.bindings();
  Script script;
  const auto host = machine.host();
  const auto effects = scripted_effects(host, script);
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  const std::string sound = std::string("/sys/bus/pci/devices/") + kSound;
  ASSERT_TRUE(effects.write(sound + "/driver/unbind", kSound).ok());
  ASSERT_TRUE(effects.write(sound + "/driver_override", "\n").ok());
  ASSERT_TRUE(effects.write("/sys/bus/pci/drivers/snd_hda_intel/bind", kSound).ok());
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  EXPECT_TRUE(is_bound(machine));
  ASSERT_TRUE(release_gpu(machine, script).ok());
  EXPECT_EQ(machine.bindings(), before);
}

TEST(Release, LetsTheFunctionsSleepAgain) {
  TestHost machine;
  const std::string power = std::string("/sys/bus/pci/devices/") + kGpu + "/power/control";
  Script script;
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  EXPECT_EQ(machine.host().read_value(power), "on");
  ASSERT_TRUE(release_gpu(machine, script).ok());
  EXPECT_EQ(machine.host().read_value(power), "auto");
}

TEST(Release, OfACardThatGantryDidNotBindGoesToNvidia) {
  TestHost machine;
  Script script;
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  machine.tree().remove("run/gantry/vfio/0000:3b:00.0.bound");
  const auto released = release_gpu(machine, script);
  ASSERT_TRUE(released.ok()) << released.error().text();
  EXPECT_EQ(machine.driver(kGpu), "nvidia");
  EXPECT_EQ(machine.driver(kSound), "snd_hda_intel");
  EXPECT_EQ(machine.driver_override(kGpu), "");
}

// After rmmod of the whole driver, modprobe nvidia brings nvidia_uvm not back.
TEST(Release, LoadsTheModulesBesideNvidiaThatWereLoadedBefore) {
  TestHost machine;
  machine.file("sys/module/nvidia_uvm/initstate", "live\n");
  Script script;
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  machine.tree().remove("sys/module/nvidia_uvm").remove("sys/bus/pci/drivers/nvidia");
  const auto released = release_gpu(machine, script);
  ASSERT_TRUE(released.ok()) << released.error().text();
  EXPECT_EQ(machine.driver(kGpu), "nvidia");
  EXPECT_THAT(sysfs_writes(script), Contains("modprobe nvidia"));
  EXPECT_THAT(sysfs_writes(script), Contains("modprobe nvidia_uvm"));
  EXPECT_THAT(sysfs_writes(script), Not(Contains("modprobe nvidia_modeset")));
  // The simulated kernel does not have that module: that is a note and keeps no GPU.
  EXPECT_THAT(released->notes, ElementsAre(HasSubstr("could not load module nvidia_uvm")));
}

TEST(Release, ChecksTheFilesAndTheNodeOfTheDriver) {
  const auto notes_with = [](const std::string& table, bool information = true) {
    TestHost machine;
    machine.file("proc/devices", "Character devices:\n195 nvidia\n195 nvidiactl\n\n");
    machine.tree().remove("dev/nvidia0");
    machine.file("dev.table", table + "/dev/nvidiactl c 195 255 0666 0 0\n");
    Script script;
    script.rule = [&](const std::string&) -> Status {  // after the plan was made
      if (!information) machine.tree().remove(std::string("proc/driver/nvidia/gpus/") + kGpu);
      return {};
    };
    EXPECT_TRUE(bind_gpu(machine, script).ok());
    const auto released = release_gpu(machine, script);
    EXPECT_TRUE(released.ok()) << released.error().text();
    return released->notes;
  };
  EXPECT_THAT(notes_with("/dev/nvidia0 c 195 0 0666 0 0\n"), IsEmpty());
  EXPECT_THAT(notes_with(""),
              ElementsAre("0000:3b:00.0: /dev/nvidia0 (195:0) is missing; `gantry doctor --fix` "
                          "creates it"));
  EXPECT_THAT(notes_with("/dev/nvidia0 c 195 4 0666 0 0\n"),
              ElementsAre(HasSubstr("/dev/nvidia0 is 195:4 but the kernel assigned 195:0")));
  EXPECT_THAT(notes_with("", false),
              ElementsAre(AllOf(HasSubstr("there is no /proc/driver/nvidia/gpus/0000:3b:00.0"),
                                HasSubstr("dmesg"))));
}

// As nvidia.ko does where another driver has every GPU.
Status refuse_without_free_gpu(const TestHost& machine, const std::string& entry) {
  if (entry != "modprobe nvidia") return {};
  const bool free = machine.driver(kGpu).empty() || machine.driver(kTwin).empty();
  return free ? Status{} : Error::sys(ENODEV, "modprobe: could not insert nvidia");
}

// All GPUs are with vfio-pci from boot on, so the kernel never loaded nvidia.ko.
class ReleaseAfterBoot : public testing::Test {
 protected:
  ReleaseAfterBoot() {
    for (const auto* gpu : {kGpu, kTwin})
      EXPECT_TRUE(effects_.write("/sys/bus/pci/drivers/nvidia/unbind", gpu).ok());
    machine_.tree().remove("sys/bus/pci/drivers/nvidia");
    EXPECT_TRUE(bind(host_, {.targets = {at(kGpu), at(kTwin)}}, {}, effects_).ok());
    EXPECT_EQ(machine_.driver(kTwin), "vfio-pci");
    script_.log.clear();
    script_.rule = [this](const std::string& entry) {
      return refuse_without_free_gpu(machine_, entry);
    };
  }

  TestHost& install_driver() {
    return machine_.file("lib/modules/6.1.0-21-amd64/modules.dep",
                         "kernel/drivers/vfio/pci/vfio-pci.ko:\nupdates/dkms/nvidia.ko:\n");
  }

  TestHost machine_;
  Script script_;
  sys::Host host_ = machine_.host();
  Effects effects_ = scripted_effects(host_, script_);
};

TEST_F(ReleaseAfterBoot, LoadsTheDriverIfItIsInstalled) {
  install_driver();
  const auto released = release_gpu(machine_, script_);
  ASSERT_TRUE(released.ok()) << released.error().text();
  EXPECT_EQ(machine_.driver(kGpu), "nvidia");
  EXPECT_EQ(machine_.driver(kTwin), "vfio-pci");
  EXPECT_THAT(sysfs_writes(script_), Contains("modprobe nvidia"));
  EXPECT_THAT(sysfs_writes(script_), Contains("modprobe nvidia_uvm"));
  EXPECT_THAT(released->notes, Not(Contains(HasSubstr("has no driver"))));
}

TEST_F(ReleaseAfterBoot, SaysThatTheGpuHasNoDriverIfNoneIsInstalled) {
  const auto released = release_gpu(machine_, script_);
  ASSERT_TRUE(released.ok()) << released.error().text();
  EXPECT_EQ(machine_.driver(kGpu), "");
  EXPECT_THAT(released->notes, ElementsAre(AllOf(HasSubstr("0000:3b:00.0 has no driver now"),
                                                 HasSubstr("sudo modprobe nvidia"))));
  EXPECT_THAT(sysfs_writes(script_), Not(Contains("modprobe nvidia")));
}

TEST_F(ReleaseAfterBoot, SaysWhyTheDriverDidNotLoad) {
  install_driver();
  script_.rule = [](const std::string& entry) -> Status {
    if (entry == "modprobe nvidia") return Error::sys(ENOKEY, "modprobe nvidia");
    return {};
  };
  const auto released = release_gpu(machine_, script_);
  ASSERT_TRUE(released.ok()) << released.error().text();
  EXPECT_EQ(machine_.driver(kGpu), "");
  EXPECT_THAT(released->notes, Contains(HasSubstr("could not load module nvidia: ")));
  EXPECT_THAT(released->notes, Contains(HasSubstr("0000:3b:00.0 has no driver now")));
  EXPECT_FALSE(machine_.has_journal());
}

TEST_F(ReleaseAfterBoot, SaysThatTheDriverDidNotTakeTheCard) {
  install_driver().file("sys/bus/pci/drivers/nvidia/bind", "");
  script_.rule = [&](const std::string& entry) -> Status {
    if (entry.starts_with("write /sys/bus/pci/drivers_probe"))
      machine_.file("sys/devices/pci0000:00/0000:3b:00.0/class", "0x120000\n");  // not nvidia's
    return {};
  };
  const auto released = release_gpu(machine_, script_);
  ASSERT_TRUE(released.ok()) << released.error().text();
  EXPECT_THAT(released->notes, Contains(HasSubstr("nvidia did not take it; see `sudo dmesg")));
}

// The driver was unloaded while virtual machines had all GPUs.
TEST(Release, LoadsTheDriverWhenTheGpuIsFree) {
  TestHost machine;
  Script script;
  const auto host = machine.host();
  const auto effects = scripted_effects(host, script);
  ASSERT_TRUE(bind(host, {.targets = {at(kGpu), at(kTwin)}}, {}, effects).ok());
  machine.tree().remove("sys/bus/pci/drivers/nvidia");
  script.rule = [&](const std::string& entry) { return refuse_without_free_gpu(machine, entry); };
  const auto released = release_gpu(machine, script);
  ASSERT_TRUE(released.ok()) << released.error().text();
  EXPECT_EQ(machine.driver(kGpu), "nvidia");
}

TEST(Release, LoadsNoModuleThatIsStillLoaded) {
  TestHost machine;
  machine.file("sys/module/nvidia_uvm/initstate", "live\n");
  Script script;
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  ASSERT_TRUE(release_gpu(machine, script).ok());
  EXPECT_THAT(sysfs_writes(script), Not(Contains("modprobe nvidia_uvm")));
}

// Kernels with CONFIG_VFIO_DEVICE_CDEV have a node for each device beside the one of its group.
TEST(Bind, NotesWhoCanOpenTheNodeOfTheDevice) {
  const auto notes_with = [](const std::string& access) {
    TestHost machine;
    const std::string device = std::string("sys/devices/pci0000:00/") + kGpu;
    machine.file(device + "/vfio-dev/vfio3/dev", "511:3\n");
    if (!access.empty())
      machine.file("dev.table", fmt::format("/dev/vfio/devices/vfio3 c 511 3 {}\n", access));
    Script script;
    const auto bound = bind_gpu(machine, script);
    EXPECT_TRUE(bound.ok()) << bound.error().text();
    return bound->notes;
  };
  EXPECT_THAT(notes_with("0600 0 0"), IsEmpty());
  EXPECT_THAT(notes_with(""), ElementsAre(HasSubstr("/dev/vfio/devices/vfio3 did not appear")));
  EXPECT_THAT(notes_with("0660 0 107"),
              ElementsAre("not only root can open /dev/vfio/devices/vfio3 (mode 0660, user 0, "
                          "group 107)"));
  EXPECT_THAT(notes_with("0666 0 0"), ElementsAre(HasSubstr("every user of this machine")));
}

// NVSwitches have a driver of their own, nvidia-nvswitch, in the module nvidia.
void add_nvswitch(TestHost& machine) {
  for (const auto* file : {"bind", "unbind", "new_id"})
    machine.file(std::string("sys/bus/pci/drivers/nvidia-nvswitch/") + file, "");
  machine.add({.address = kSwitch,
               .device = "0x22a3",
               .class_code = "0x068000",
               .driver = "nvidia-nvswitch",
               .group = 50});
  machine.file("dev/nvidia-nvswitch0", "").file("dev/nvidia-nvswitchctl", "");
}

TEST(Release, OfAnNvSwitchLoadsTheModuleThatHasItsDriver) {
  TestHost machine;
  add_nvswitch(machine);
  Script script;
  const auto host = machine.host();
  const auto effects = scripted_effects(host, script);
  const auto bound = bind(host, {.targets = {at(kSwitch)}}, {}, effects);
  ASSERT_TRUE(bound.ok()) << bound.error().text();
  EXPECT_EQ(machine.driver(kSwitch), "vfio-pci");
  machine.tree().remove("sys/bus/pci/drivers/nvidia-nvswitch");  // rmmod nvidia
  const auto released = release(host, {at(kSwitch)}, {}, effects);
  ASSERT_TRUE(released.ok()) << released.error().text();
  EXPECT_EQ(machine.driver(kSwitch), "nvidia-nvswitch");
  EXPECT_THAT(sysfs_writes(script), Contains("modprobe nvidia"));
}

TEST(Bind, OfAnNvSwitchThatFabricManagerUsesIsRefused) {
  TestHost machine;
  add_nvswitch(machine);
  machine.process(800, "nvidia-smi", "/dev/nvidia-nvswitchctl");
  machine.process(801, "nv-fabricmanager", "/dev/nvidia-nvswitch0");
  Script script;
  const auto host = machine.host();
  const auto effects = scripted_effects(host, script);
  const auto bound = bind(host, {.targets = {at(kSwitch)}}, {}, effects);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Errc::Busy);
  EXPECT_THAT(bound.error().text(), AllOf(HasSubstr("pid 801"), Not(HasSubstr("pid 800"))));
  EXPECT_EQ(machine.driver(kSwitch), "nvidia-nvswitch");
  EXPECT_TRUE(bind(host, {.targets = {at(kTwin)}}, {}, effects).ok());  // a GPU is free
}

TEST(Release, OfAGpuThatAVirtualMachineUsesIsRefused) {
  TestHost machine;
  Script script;
  ASSERT_TRUE(bind_gpu(machine, script).ok());
  machine.process(5000, "qemu-system-x86", "/dev/vfio/12");
  const auto released = release_gpu(machine, script);
  ASSERT_FALSE(released.ok());
  EXPECT_EQ(released.error().code(), Errc::Busy);
  EXPECT_THAT(released.error().text(), HasSubstr("pid 5000 (qemu-system-x86 --all) has "
                                                 "/dev/vfio/12 open"));
  EXPECT_TRUE(is_bound(machine));
}

TEST(Bind, RefusesABusyGpuBeforeTheFirstWrite) {
  TestHost machine;
  machine.process(4711, "python3", "/dev/nvidia0");
  Script script;
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Errc::Busy);
  EXPECT_THAT(bound.error().text(), AllOf(HasSubstr("0000:3b:00.0 is in use"),
                                          HasSubstr("pid 4711"), HasSubstr("--drain")));
  EXPECT_EQ(script.count, 0);
}

TEST(Bind, DrainWaitsForTheProcess) {
  TestHost machine;
  machine.process(4711, "python3", "/dev/nvidia0");
  Script script;
  const auto host = machine.host();
  auto effects = scripted_effects(host, script);
  int pauses = 0;
  effects.pause = [&](std::chrono::milliseconds) {
    if (++pauses == 3) machine.remove_process(4711);
  };
  const auto bound = bind(host, {.targets = {at(kGpu)}}, {.drain = true}, effects);
  ASSERT_TRUE(bound.ok()) << bound.error().text();
  EXPECT_EQ(pauses, 3);
  EXPECT_TRUE(is_bound(machine));
}

TEST(Bind, DrainGivesUpAtItsDeadline) {
  TestHost machine;
  machine.process(4711, "python3", "/dev/nvidia0");
  Script script;
  const auto bound =
      bind_gpu(machine, script, {.drain = true, .drain_deadline = std::chrono::seconds(2)});
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Errc::Busy);
}

TEST(Bind, StopsDcgmAndPersistenceAndStartsDcgmAgain) {
  TestHost machine;
  machine.process(811, "nvidia-persistenced", "/dev/nvidia0");
  machine.process(900, "nv-hostengine", "/dev/nvidia0", "0::/system.slice/nvidia-dcgm.service\n");
  Script script;
  script.rule = [&](const std::string& entry) -> Status {
    if (contains(entry, "-pm 0")) machine.remove_process(811);
    if (contains(entry, "systemctl stop")) machine.remove_process(900);
    return {};
  };
  const auto bound = bind_gpu(machine, script);
  ASSERT_TRUE(bound.ok()) << bound.error().text();
  EXPECT_THAT(script.log, testing::IsSupersetOf({"run nvidia-smi -i 0000:3b:00.0 -pm 0",
                                                 "run systemctl stop nvidia-dcgm.service",
                                                 "run systemctl start nvidia-dcgm.service"}));
  script.log.clear();
  ASSERT_TRUE(release_gpu(machine, script).ok());
  EXPECT_THAT(script.log, testing::Contains("run nvidia-smi -i 0000:3b:00.0 -pm 1"));
}

TEST(Bind, AProcessThatComesAfterTheCheckIsSeenBeforeTheUnbind) {
  TestHost machine;
  const auto before = machine.bindings();
  Script script;
  script.rule = [&](const std::string& entry) -> Status {
    if (entry == "modprobe vfio_pci") machine.process(4711, "python3", "/dev/nvidia0");
    return {};
  };
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Errc::Busy);
  EXPECT_EQ(machine.bindings(), before);
  EXPECT_FALSE(machine.has_journal());
}

// The driver of a vGPU host refuses every open of a GPU whose unbind lock is taken.
TEST(Bind, ThatFailsGivesTheUnbindLockBack) {
  TestHost machine;
  const std::string lock = std::string("proc/driver/nvidia/gpus/") + kGpu + "/unbindLock";
  machine.file(lock, "0\n");
  Script script;
  script.rule = [](const std::string& entry) -> Status {
    if (contains(entry, "/driver/unbind")) return Error::sys(EIO, entry);
    return {};
  };
  ASSERT_FALSE(bind_gpu(machine, script).ok());
  EXPECT_THAT(script.log, testing::Contains("write /" + lock + " 1"));
  EXPECT_EQ(machine.host().read_value("/" + lock), "0");
  EXPECT_FALSE(machine.has_journal());
}

TEST(Bind, AServiceThatDoesNotStartAgainDoesNotKeepTheGpuInBetween) {
  TestHost machine;
  const auto before = machine.bindings();
  machine.process(811, "nvidia-persistenced", "/dev/nvidia0");
  Script script;
  script.rule = [](const std::string& entry) -> Status {
    if (contains(entry, "nvidia-smi")) return Error(Errc::Internal, "nvidia-smi: not found");
    return {};
  };
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Errc::Denied);  // not in between: the owner stays as it was
  EXPECT_THAT(bound.error().text(), HasSubstr("nvidia-smi: not found"));
  EXPECT_EQ(machine.bindings(), before);
  EXPECT_FALSE(machine.has_journal());
}

TEST(Bind, RefusesWhileAnotherGantryIsAtWork) {
  TestHost machine;
  const auto lock = lock_state(machine.host());
  ASSERT_TRUE(lock.ok());
  Script script;
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Errc::Busy);
  EXPECT_THAT(bound.error().text(), AllOf(HasSubstr("another Gantry"), HasSubstr("fuser")));
  EXPECT_EQ(script.count, 0);
}

TEST(Bind, ACardThatVanishesBetweenCheckAndWriteIsReportedAndTheRestGoesBack) {
  TestHost machine;
  Script script;
  script.rule = [&](const std::string& entry) -> Status {
    if (entry == fmt::format("write /sys/bus/pci/devices/{0}/driver/unbind {0}", kSound)) {
      machine.tree().remove(std::string("sys/bus/pci/devices/") + kGpu);
    }
    return {};
  };
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code(), Errc::NotFound);
  EXPECT_THAT(bound.error().text(), HasSubstr("0000:3b:00.0 has gone from the PCI bus"));
  EXPECT_EQ(machine.driver(kSound), "snd_hda_intel");
  EXPECT_EQ(machine.driver_override(kSound), "");
  EXPECT_FALSE(machine.has_journal());
}

TEST(Bind, AnotherCardInTheSlotIsNotTouched) {
  TestHost machine;
  Script script;
  script.rule = [&](const std::string& entry) -> Status {
    if (entry == "modprobe vfio_pci")
      machine.file(std::string("sys/devices/pci0000:00/") + kGpu + "/device", "0x2335\n");
    return {};
  };
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(bound.error().text(), HasSubstr("is another card since it was checked"));
  EXPECT_EQ(machine.driver(kGpu), "nvidia");
  EXPECT_EQ(machine.driver_override(kGpu), "");
}

TEST(Bind, AFullDiskForTheJournalChangesNothing) {
  TestHost machine;
  const auto before = machine.bindings();
  Script script;
  script.rule = [](const std::string& entry) -> Status {
    if (entry.starts_with("save ")) return Error::sys(ENOSPC, entry);
    return {};
  };
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(bound.error().text(),
              AllOf(HasSubstr("nothing was changed"), HasSubstr("No space left on device")));
  EXPECT_THAT(sysfs_writes(script), IsEmpty());
  EXPECT_EQ(machine.bindings(), before);
}

TEST(Bind, ADiskThatFillsLaterTakesEverythingBack) {
  TestHost machine;
  const auto before = machine.bindings();
  Script script;
  int saves = 0;
  script.rule = [&](const std::string& entry) -> Status {
    if (entry.starts_with("save ") && ++saves > 6) return Error::sys(ENOSPC, entry);
    return {};
  };
  const auto bound = bind_gpu(machine, script);
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(bound.error().text(), HasSubstr("No space left on device"));
  EXPECT_EQ(machine.bindings(), before);
  EXPECT_FALSE(machine.has_journal());
}

}  // namespace
}  // namespace gantry::vfio
