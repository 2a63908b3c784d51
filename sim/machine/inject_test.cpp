// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/inject.hpp"

#include "base/core/nearest.hpp"
#include "base/sys/replace_file.hpp"
#include "sim/machine/fault_names.hpp"
#include "sim/machine/image.hpp"
#include "sim/machine/mig.hpp"
#include "sim/machine/state_file.hpp"
#include "support/machine.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

namespace gantry::sim {
namespace {

using ::testing::HasSubstr;

// The state that a library of the tree sees, read from the file.
Image seen_by(const test::Machine& machine, const std::string& path) {
  auto image = find_image(*machine.host().read(path, 256U << 20U));
  EXPECT_TRUE(image.ok());
  return *std::move(image);
}

Image nvml_sees(const test::Machine& machine) {
  return seen_by(machine, read_marker(machine.root())->nvml_library);
}

// Every file of the tree except the libraries, whose sequence number changes.
std::map<std::string, std::string> snapshot(const test::Machine& machine) {
  std::map<std::string, std::string> files;
  const auto host = machine.host();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(machine.root())) {
    const auto path = entry.path().string().substr(machine.root().size());
    if (path.starts_with("/usr/") || path.starts_with("/.gantry-sim.d")) continue;
    if (entry.is_symlink())
      files[path] = "-> " + std::filesystem::read_symlink(entry.path()).string();
    else if (entry.is_regular_file())
      files[path] = host.read(path).value_or("?");
    else if (entry.is_directory())
      files[path] = "/";
  }
  return files;
}

MigRequest instance(std::string_view text) {
  return *parse_mig_request(text);
}

TEST(InjectXid, AddsAnEventToBothLibraries) {
  const test::Machine machine("h200x8");
  ASSERT_TRUE(inject_xid(machine.root(), 2, 31).ok());
  const auto marker = *read_marker(machine.root());
  for (const auto& path : {marker.nvml_library, marker.cuda_library}) {
    const auto image = seen_by(machine, path);
    EXPECT_EQ(image->state.event_sequence, 1U);
    EXPECT_EQ(image->state.event[1].gpu, 2U);
    EXPECT_EQ(image->state.event[1].data, 31U);
    EXPECT_EQ(image->state.sequence, 2U);
    EXPECT_EQ(image->state.gpu[2].reset_required, 0U);  // the program's own fault
  }
}

TEST(InjectXid, FortyEightCountsTheErrorAndWantsAReset) {
  const test::Machine machine("h200x8");
  ASSERT_TRUE(inject_xid(machine.root(), 0, 48).ok());
  const auto image = nvml_sees(machine);
  EXPECT_EQ(image->state.gpu[0].ecc_uncorrected_volatile, 1U);
  EXPECT_EQ(image->state.gpu[0].reset_required, 1U);
  EXPECT_EQ(image->state.gpu[0].recovery_action, 1U);
  EXPECT_EQ(image->state.event_sequence, 2U);  // the XID and the double-bit error
}

TEST(InjectXid, SeventyNineTakesTheCardOffTheBusAndClearBringsItBack) {
  const test::Machine machine("h200x8");
  const auto before = snapshot(machine);
  ASSERT_TRUE(inject_xid(machine.root(), 3, 79).ok());
  EXPECT_EQ(nvml_sees(machine)->state.gpu[3].lost, 1U);
  EXPECT_EQ(machine.host().read("/sys/bus/pci/devices/0000:5d:00.0/config")->substr(0, 4),
            "\xff\xff\xff\xff");
  EXPECT_THAT(*machine.host().read("/var/log/dmesg"), HasSubstr("NVRM: Xid (PCI:0000:5d:00): 79,"));
  ASSERT_TRUE(clear(machine.root(), ClearScope::Lost, 3).ok());
  EXPECT_EQ(nvml_sees(machine)->state.gpu[3].lost, 0U);
  EXPECT_EQ(snapshot(machine), before);
}

TEST(InjectLost, AConfigSpaceOfTerabytesIsRefusedAndStays) {
  const test::Machine machine("h200");
  const auto gpu = machine.host().resolve("/sys/bus/pci/devices/0000:00:06.0");
  ASSERT_TRUE(gpu.ok()) << gpu.error().text();
  const auto path = machine.path(*gpu + "/config");
  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 40), 0);
  const auto status = inject_lost(machine.root(), 0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::Corrupt);
  EXPECT_EQ(machine.host().info(*gpu + "/config")->size, std::uint64_t{1} << 40U);
  EXPECT_EQ(nvml_sees(machine)->state.gpu[0].lost, 0U);
}

TEST(InjectLost, AnInjectorKilledBeforeItsStandInIsClearedAndRepeated) {
  const test::Machine machine("h200");
  const auto before = snapshot(machine);
  const auto config = *machine.host().resolve("/sys/bus/pci/devices/0000:00:06.0") + "/config";
  const auto kept = machine.path("/.gantry-sim.d/aside" + config);
  std::filesystem::create_directories(std::filesystem::path(kept).parent_path());
  std::filesystem::create_hard_link(machine.path(config), kept);
  ASSERT_TRUE(clear(machine.root(), ClearScope::Lost, 0).ok());
  EXPECT_FALSE(std::filesystem::exists(kept));
  EXPECT_EQ(snapshot(machine), before);
  std::filesystem::create_hard_link(machine.path(config), kept);
  ASSERT_TRUE(inject_lost(machine.root(), 0).ok());
  EXPECT_EQ(machine.host().read(config)->substr(0, 2), "\xff\xff");
}

TEST(InjectRemove, TheKernelShowsTheGpuNoMoreAndClearBringsItBack) {
  const test::Machine machine("h200x8");
  const auto before = snapshot(machine);
  ASSERT_TRUE(inject_remove(machine.root(), 3).ok());
  EXPECT_FALSE(machine.host().exists("/proc/driver/nvidia/gpus/0000:5d:00.0"));
  EXPECT_FALSE(machine.host().link_info("/sys/bus/pci/devices/0000:5d:00.0").ok());
  EXPECT_FALSE(machine.host().device("/dev/nvidia3").ok());
  EXPECT_TRUE(machine.host().device("/dev/nvidia2").ok());
  ASSERT_TRUE(inject_remove(machine.root(), 3).ok()) << "twice is once";
  ASSERT_TRUE(clear(machine.root(), ClearScope::Removed, 2).ok());
  EXPECT_FALSE(machine.host().device("/dev/nvidia3").ok()) << "another one was brought back";
  ASSERT_TRUE(clear(machine.root(), ClearScope::Removed, 3).ok());
  EXPECT_TRUE(machine.host().device("/dev/nvidia3").ok());
  EXPECT_EQ(snapshot(machine), before);
}

TEST(InjectRemove, OutlivesTheDriverAndHasNoInstancesMeanwhile) {
  const test::Machine machine("h200x8");
  const auto before = snapshot(machine);
  ASSERT_TRUE(inject_remove(machine.root(), 3).ok());
  ASSERT_TRUE(inject_unload(machine.root()).ok());
  EXPECT_EQ(clear(machine.root(), ClearScope::Removed, 3).error().code(), Errc::Busy);
  ASSERT_TRUE(inject_load(machine.root()).ok());
  EXPECT_FALSE(machine.host().exists("/proc/driver/nvidia/gpus/0000:5d:00.0"));
  EXPECT_FALSE(machine.host().exists("/proc/driver/nvidia/capabilities/gpu3"));
  ASSERT_TRUE(inject_unload(machine.root()).ok());
  EXPECT_EQ(inject_remove(machine.root(), 4).error().code(), Errc::Busy);
  ASSERT_TRUE(clear(machine.root(), ClearScope::Everything, std::nullopt).ok());
  EXPECT_EQ(snapshot(machine), before);
}

TEST(InjectXid, DoesNotThrowAwayALogItCannotRead) {
  const test::Machine machine("h200");
  std::filesystem::create_directories(machine.path("/var/log"));
  std::filesystem::remove(machine.path("/var/log/dmesg"));
  const std::string line(sys::Host::kReadLimit + 1, 'x');
  ASSERT_TRUE(sys::replace_file(machine.path("/var/log/dmesg"), line).ok());
  EXPECT_FALSE(inject_xid(machine.root(), 0, 79).ok());
  EXPECT_EQ(machine.host().info("/var/log/dmesg")->size, line.size());
  EXPECT_EQ(nvml_sees(machine)->state.event_sequence, 0U);
}

TEST(Inject, AGpuThatIsNotThereIsAnError) {
  const test::Machine machine("h200");
  const auto status = inject_xid(machine.root(), 1, 79);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::NotFound);
  EXPECT_THAT(status.error().text(), HasSubstr("GPU 1 does not exist"));
}

TEST(Inject, AMachineWithoutADriverSaysSo) {
  const test::Machine machine("nouveau");
  const auto status = inject_unload(machine.root());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::Unsupported);
}

TEST(InjectEcc, CountsOnCardsThatHaveItOnly) {
  const test::Machine machine("h200");
  ASSERT_TRUE(inject_ecc(machine.root(), 0, {.corrected = 5, .uncorrected = 2}).ok());
  EXPECT_EQ(nvml_sees(machine)->state.gpu[0].ecc_corrected_volatile, 5U);
  EXPECT_EQ(nvml_sees(machine)->state.gpu[0].ecc_uncorrected_aggregate, 2U);
  ASSERT_TRUE(clear(machine.root(), ClearScope::Ecc, 0).ok());
  EXPECT_EQ(nvml_sees(machine)->state.gpu[0].ecc_corrected_volatile, 0U);
  const test::Machine old("k2000");
  EXPECT_EQ(inject_ecc(old.root(), 0, {.corrected = 1}).error().code(), Errc::Unsupported);
}

TEST(InjectTemperature, ThrottlesFromTheSlowdownTemperatureOn) {
  const test::Machine machine("t4x4");
  ASSERT_TRUE(inject_temperature(machine.root(), 1, 80).ok());
  EXPECT_EQ(nvml_sees(machine)->state.gpu[1].clocks_event_reasons, 1U);
  ASSERT_TRUE(inject_temperature(machine.root(), 1, 94).ok());
  EXPECT_EQ(nvml_sees(machine)->state.gpu[1].temperature, 94);
  EXPECT_EQ(nvml_sees(machine)->state.gpu[1].clocks_event_reasons, 0x69U);
  ASSERT_TRUE(clear(machine.root(), ClearScope::Temperature, std::nullopt).ok());
  EXPECT_EQ(nvml_sees(machine)->state.gpu[1].temperature, 36);
}

TEST(InjectMig, MakesInstancesWithTheirCapabilityFilesAndNodes) {
  const test::Machine machine("h200");
  const auto before = snapshot(machine);
  ASSERT_TRUE(inject_mig(machine.root(), 0,
                         {{instance("3g.71gb"), instance("2g.35gb"), instance("1g.18gb")}})
                  .ok());
  const auto image = nvml_sees(machine);
  EXPECT_EQ(image->state.gpu[0].mig_current, 1U);
  EXPECT_EQ(image->state.gpu[0].mig_count, 3U);
  EXPECT_EQ(image->state.gpu[0].mig[0].gi_id, 2U);
  EXPECT_EQ(image->state.gpu[0].mig[1].gi_id, 3U);
  EXPECT_EQ(image->state.gpu[0].mig[2].gi_id, 9U);
  const auto host = machine.host();
  EXPECT_THAT(*host.read("/proc/driver/nvidia/capabilities/gpu0/mig/gi2/access"),
              HasSubstr("DeviceFileMinor: 21\n"));
  EXPECT_THAT(*host.read("/proc/driver/nvidia/capabilities/gpu0/mig/gi2/ci0/access"),
              HasSubstr("DeviceFileMinor: 22\n"));
  EXPECT_EQ(host.device("/dev/nvidia-caps/nvidia-cap21")->major, 241U);
  ASSERT_TRUE(clear(machine.root(), ClearScope::Mig, 0).ok());
  EXPECT_EQ(nvml_sees(machine)->state.gpu[0].mig_count, 0U);
  EXPECT_EQ(snapshot(machine), before);
}

TEST(InjectMig, RefusesWhatDoesNotFitAndChangesNothing) {
  const test::Machine machine("a100x8");
  const auto before = snapshot(machine);
  const auto status = inject_mig(machine.root(), 0, {{instance("4g.20gb"), instance("4g.20gb")}});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::Busy);
  EXPECT_EQ(nvml_sees(machine)->state.gpu[0].mig_count, 7U);
  EXPECT_EQ(snapshot(machine), before);
}

TEST(InjectMig, SwitchesOffAndBackToTheLayoutOfTheMachine) {
  const test::Machine machine("a100x8");
  const auto before = snapshot(machine);
  ASSERT_TRUE(inject_mig(machine.root(), 0, std::nullopt).ok());
  EXPECT_EQ(nvml_sees(machine)->state.gpu[0].mig_current, 0U);
  EXPECT_FALSE(machine.host().exists("/proc/driver/nvidia/capabilities/gpu0/mig/gi7"));
  EXPECT_FALSE(machine.host().device("/dev/nvidia-caps/nvidia-cap66").ok());
  ASSERT_TRUE(clear(machine.root(), ClearScope::Everything, std::nullopt).ok());
  EXPECT_EQ(nvml_sees(machine)->state.gpu[0].mig_count, 7U);
  EXPECT_EQ(snapshot(machine), before);
}

TEST(InjectUnload, TakesTheKernelModuleAwayAndLoadBringsItBack) {
  const test::Machine machine("h200x8");
  const auto before = snapshot(machine);
  ASSERT_TRUE(inject_unload(machine.root()).ok());
  const auto host = machine.host();
  EXPECT_FALSE(host.exists("/proc/driver/nvidia"));
  EXPECT_FALSE(host.exists("/sys/module/nvidia"));
  EXPECT_FALSE(host.exists("/sys/module/nvidia_uvm"));
  EXPECT_FALSE(host.exists("/sys/bus/pci/devices/0000:18:00.0/driver"));
  EXPECT_THAT(*host.read("/proc/modules"), HasSubstr("ib_core"));
  EXPECT_THAT(*host.read("/proc/modules"), ::testing::Not(HasSubstr("nvidia")));
  EXPECT_EQ(nvml_sees(machine)->state.driver_unloaded, 1U);
  ASSERT_TRUE(inject_unload(machine.root()).ok());  // the second call changes nothing
  ASSERT_TRUE(inject_load(machine.root()).ok());
  EXPECT_EQ(nvml_sees(machine)->state.driver_unloaded, 0U);
  EXPECT_EQ(snapshot(machine), before);
}

TEST(InjectLoad, BringsTheMigLayoutThatWasMadeMeanwhile) {
  const test::Machine machine("h200");
  ASSERT_TRUE(inject_unload(machine.root()).ok());
  ASSERT_TRUE(inject_mig(machine.root(), 0, {{instance("3g.71gb")}}).ok());
  EXPECT_FALSE(machine.host().exists("/proc/driver/nvidia"));
  ASSERT_TRUE(inject_load(machine.root()).ok());
  EXPECT_TRUE(machine.host().exists("/proc/driver/nvidia/capabilities/gpu0/mig/gi2/access"));
  EXPECT_TRUE(machine.host().device("/dev/nvidia-caps/nvidia-cap21").ok());
}

TEST(InjectReboot, LeavesTheMigModeOnAmpereAndNoInstances) {
  const test::Machine ampere("a100x8");
  const auto boot = ampere.host().read("/proc/sys/kernel/random/boot_id");
  ASSERT_TRUE(inject_reboot(ampere.root()).ok());
  EXPECT_NE(*ampere.host().read("/proc/sys/kernel/random/boot_id"), *boot);
  const auto image = nvml_sees(ampere);
  EXPECT_EQ(image->state.gpu[0].mig_current, 1U);
  EXPECT_EQ(image->state.gpu[0].mig_count, 0U);
  EXPECT_FALSE(ampere.host().exists("/proc/driver/nvidia/capabilities/gpu0/mig/gi7"));
  const test::Machine hopper("h200");
  ASSERT_TRUE(inject_mig(hopper.root(), 0, {{instance("3g.71gb")}}).ok());
  ASSERT_TRUE(inject_reboot(hopper.root()).ok());
  EXPECT_EQ(nvml_sees(hopper)->state.gpu[0].mig_current, 0U);
  EXPECT_EQ(nvml_sees(hopper)->state.gpu[0].mig_pending, 0U);
}

TEST(InjectFault, CountsCallsThatChangeMigFromNow) {
  const test::Machine machine("h200");
  {
    auto file = *StateFile::open(machine.root());
    file.state().mig_calls[GANTRY_SIM_MIG_DESTROY] = 4;
    file.state().mig_calls[GANTRY_SIM_MIG_CREATE] = 5;
    file.commit();
  }
  ASSERT_TRUE(inject_fault(machine.root(), {.function = "mig", .result = 19, .call = 2}).ok());
  ASSERT_TRUE(
      inject_fault(machine.root(), {.function = "nvmlGpuInstanceDestroy", .result = 19, .call = 1})
          .ok());
  const auto image = nvml_sees(machine);
  EXPECT_EQ(image->state.fault[0].call, 11U);
  EXPECT_EQ(image->state.fault[1].call, 5U);
  const auto refused = inject_fault(
      machine.root(), {.function = "nvmlDeviceGetName", .action = GANTRY_SIM_FAULT_LOSE});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Errc::Invalid);
  EXPECT_THAT(refused.error().text(), HasSubstr("changes no MIG instances"));
}

TEST(InjectFault, IsReplacedByNameAndLimited) {
  const test::Machine machine("h200");
  ASSERT_TRUE(inject_fault(machine.root(), {.function = "nvmlInit_v2", .result = 9}).ok());
  ASSERT_TRUE(
      inject_fault(machine.root(), {.function = "nvmlInit_v2", .delay_ms = 50, .every = 3}).ok());
  auto image = nvml_sees(machine);
  EXPECT_EQ(image->state.fault_count, 1U);
  EXPECT_EQ(image->state.fault[0].result, 0);
  EXPECT_EQ(image->state.fault[0].delay_ms, 50U);
  const char* const more[] = {"*",
                              "cuInit",
                              "cuDeviceGet",
                              "cuDeviceGetName",
                              "cuDeviceGetCount",
                              "cuMemAlloc_v2",
                              "cuMemFree_v2",
                              "cuCtxCreate_v2",
                              "cuLaunchKernel",
                              "cuModuleLoadData",
                              "nvmlDeviceGetName",
                              "nvmlDeviceGetUUID",
                              "nvmlDeviceGetCount_v2",
                              "nvmlShutdown",
                              "nvmlSystemGetDriverVersion"};
  static_assert(std::size(more) + 1 == GANTRY_SIM_MAX_FAULTS);
  for (const auto* function : more)
    ASSERT_TRUE(inject_fault(machine.root(), {.function = function, .result = 1}).ok()) << function;
  const auto full = inject_fault(machine.root(), {.function = "cuDriverGetVersion", .result = 1});
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code(), Errc::Busy);
  ASSERT_TRUE(clear(machine.root(), ClearScope::Faults, std::nullopt).ok());
  EXPECT_EQ(nvml_sees(machine)->state.fault_count, 0U);
}

TEST(InjectFault, RefusesAFunctionThatTheDriverDoesNotHaveAndSuggestsOne) {
  const test::Machine machine("h200");
  if (!test::Machine::has_libraries()) GTEST_SKIP() << "simulated libraries are not built";
  const auto status = inject_fault(machine.root(), {.function = "nvmlInnit_v2", .result = 1});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(),
              HasSubstr("no function nvmlInnit_v2; did you mean nvmlInit_v2?"));
  EXPECT_FALSE(inject_fault(machine.root(), {.function = "printf", .result = 1}).ok());
  EXPECT_EQ(nvml_sees(machine)->state.fault_count, 0U);
}

TEST(InjectFault, NothingNearIsNoSuggestion) {
  EXPECT_EQ(nearest_name("CUINIT", {"cuInit", "nvmlInit_v2"}), "cuInit");
  EXPECT_EQ(nearest_name("something_else", {"cuInit", "nvmlInit_v2"}), "");
}

TEST(Inject, TheTreeOfAnotherUserNamesWhoMayChangeIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to change to another user";
  const test::Machine machine("h200");
  const auto parent = std::filesystem::path(machine.root()).parent_path();
  std::filesystem::permissions(parent, std::filesystem::perms(0755));
  ASSERT_EQ(::seteuid(65534), 0);
  const auto status = inject_temperature(machine.root(), 0, 50);
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::Denied);
  EXPECT_THAT(status.error().text(), HasSubstr("belongs to another user"));
}

TEST(KernelLog, HasTheDriversLinesFromTheStart) {
  const test::Machine open("h200");
  const auto log = *open.host().read("/var/log/dmesg");
  EXPECT_THAT(log,
              HasSubstr("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04"));
  EXPECT_THAT(log, HasSubstr("nvidia-uvm: Loaded the UVM driver, major device number 238."));
  EXPECT_THAT(log, ::testing::Not(HasSubstr("Xid")));
  EXPECT_THAT(*test::Machine("mismatch").host().read("/var/log/dmesg"),
              HasSubstr("NVRM: API mismatch: the client has the version 580.95.05, but"));
  EXPECT_THAT(*test::Machine("nouveau").host().read("/var/log/dmesg"),
              ::testing::Not(HasSubstr("NVRM")));
}

TEST(KernelLog, KeepsTheXidThatTheMachineWasMadeWith) {
  const test::Machine machine("fallen-off");
  const auto before = *machine.host().read("/var/log/dmesg");
  EXPECT_THAT(before,
              HasSubstr("): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."));
  ASSERT_TRUE(inject_xid(machine.root(), 3, 31).ok());
  EXPECT_NE(*machine.host().read("/var/log/dmesg"), before);
  ASSERT_TRUE(clear(machine.root(), ClearScope::Everything, std::nullopt).ok());
  EXPECT_EQ(*machine.host().read("/var/log/dmesg"), before);
}

TEST(Inject, AnInjectorKilledHalfWayIsRepairedByTheNext) {
  const test::Machine machine("h200x8");
  ASSERT_TRUE(inject_temperature(machine.root(), 0, 70).ok());
  {
    // The state after a process was killed while it wrote the first file: odd, and half of it new.
    const auto path = read_marker(machine.root())->nvml_library;
    auto bytes = *machine.host().read(path, 256U << 20U);
    const auto state = bytes.size() - sizeof(gantry_sim_footer) - sizeof(gantry_sim_state);
    bytes[state] = static_cast<char>(bytes[state] | 1);
    const auto fd = *machine.host().open(path, O_RDWR);
    ASSERT_EQ(::pwrite(fd.get(), &bytes[state], 1, static_cast<off_t>(state)), 1);
    const std::uint32_t junk = 0xdeadbeef;
    ASSERT_EQ(
        ::pwrite(fd.get(), &junk, 4, static_cast<off_t>(state + offsetof(gantry_sim_state, gpu))),
        4);
  }
  ASSERT_TRUE(inject_temperature(machine.root(), 1, 71).ok());
  const auto image = nvml_sees(machine);
  EXPECT_EQ(image->state.sequence % 2, 0U);
  EXPECT_EQ(image->state.gpu[0].lost, 0U);
  EXPECT_EQ(image->state.gpu[0].temperature, 70);
  EXPECT_EQ(image->state.gpu[1].temperature, 71);
}

TEST(Inject, TwoInjectorsDoNotLoseEachOthersEvents) {
  const test::Machine machine("h200x8");
  constexpr int kEach = 20;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  for (int i = 0; i < kEach; ++i) {
    if (!inject_xid(machine.root(), child == 0 ? 0 : 1, 13).ok()) break;
  }
  if (child == 0) ::_exit(0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(nvml_sees(machine)->state.event_sequence, 2U * kEach);
}

TEST(Inject, ATreeThatIsNotOursIsLeftAlone) {
  const auto status = inject_unload("/");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Errc::NotFound);
}

TEST(MigMinors, AreTheDriversNumbers) {
  EXPECT_EQ(gpu_instance_minor(0, 0), 3U);
  EXPECT_EQ(compute_instance_minor(0, 0, 7), 11U);
  EXPECT_EQ(gpu_instance_minor(0, 1), 12U);
  EXPECT_EQ(gpu_instance_minor(1, 0), 138U);
  EXPECT_THAT(mig_minors_file(), ::testing::EndsWith("gpu31/gi14/ci7/access 4322\n"));
}

}  // namespace
}  // namespace gantry::sim
