// SPDX-License-Identifier: Apache-2.0
// gantry vfio on the simulated virtualisation host: 0000:04:00.0 is bound to vfio-pci, its equal
// 0000:84:00.0 is the host's.
#include "sim/machine/pci_drivers.hpp"
#include "support/machine.hpp"
#include "support/run_cli.hpp"
#include "vm/pci/read_bus.hpp"
#include "vm/vfio/rebind.hpp"

#include <gmock/gmock.h>

namespace gantry::cli {
namespace {

using test::Machine;
using test::run_cli;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kBound = "0000:04:00.0";
constexpr const char* kHosts = "0000:84:00.0";

test::CliResult vfio(const Machine& machine, std::vector<std::string> words) {
  words.insert(words.begin(), {"gantry", "vfio"});
  words.insert(words.begin() + 3, {"--root", machine.root()});
  return run_cli(std::move(words));
}

std::string driver_of(const Machine& machine, const char* gpu) {
  return pci::read_driver(machine.host(), *model::PciAddress::parse(gpu));
}

TEST(VfioList, ShowsDriverGroupAndVerdict) {
  const Machine machine("vfio");
  const auto run = vfio(machine, {"list"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, ContainsRegex("0000:04:00.0 +10de:15f8 +vfio-pci +23 .* bound\n"));
  EXPECT_THAT(run.out, ContainsRegex("0000:84:00.0 +10de:15f8 +nvidia +41 .* yes\n"));
}

TEST(VfioList, SaysWhyAGuestCannotPassItsGpuOn) {
  const Machine machine("h200");
  const auto run = vfio(machine, {"list"});
  EXPECT_THAT(run.out, HasSubstr("no: this machine is itself a virtual machine"));
}

TEST(VfioList, JsonHasThePlanOfEachGpu) {
  const Machine machine("vfio");
  const auto run = vfio(machine, {"list", "--json"});
  EXPECT_THAT(run.out, AllOf(HasSubstr("\"address\": \"0000:84:00.0\""),
                             HasSubstr("\"possible\": true"), HasSubstr("\"iommuGroup\": 41")));
}

TEST(VfioPlan, ShowsTheStepsAndTheCommand) {
  const Machine machine("vfio");
  const auto run = vfio(machine, {"plan", kHosts});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("nvidia -> vfio-pci"),
                             HasSubstr("reserve 0000:84:00.0 for vfio-pci (driver_override)"),
                             HasSubstr("unbind 0000:84:00.0 from nvidia")));
  EXPECT_THAT(run.err, HasSubstr("sudo gantry vfio bind --root " + machine.root()));
  EXPECT_EQ(driver_of(machine, kHosts), "nvidia");
}

TEST(VfioPlan, ExplainsWhyNotNewId) {
  const Machine machine("vfio");
  const auto run = vfio(machine, {"plan", kHosts, "--explain"});
  EXPECT_THAT(run.out, AllOf(HasSubstr("Why driver_override and not new_id"),
                             HasSubstr("remove_id"), HasSubstr("vfio-pci.ids=")));
}

TEST(VfioBind, BindsReleasesAndLeavesTheEqualCardAlone) {
  const Machine machine("vfio");
  const auto bound = vfio(machine, {"bind", kHosts});
  ASSERT_EQ(bound.status, 0) << bound.err;
  EXPECT_THAT(bound.out, HasSubstr("0000:84:00.0: bound for virtual machines"));
  EXPECT_EQ(driver_of(machine, kHosts), "vfio-pci");
  EXPECT_THAT(vfio(machine, {"status"}).out, HasSubstr("0000:84:00.0  vfio-pci, before nvidia"));

  const auto released = vfio(machine, {"release", kHosts});
  ASSERT_EQ(released.status, 0) << released.err;
  EXPECT_EQ(driver_of(machine, kHosts), "nvidia");
  EXPECT_EQ(driver_of(machine, kBound), "vfio-pci");
  EXPECT_THAT(vfio(machine, {"status"}).out, HasSubstr("Gantry has bound no GPU."));
}

TEST(VfioRelease, GivesACardBackThatGantryDidNotBind) {
  const Machine machine("vfio");
  const auto run = vfio(machine, {"release", kBound});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(driver_of(machine, kBound), "nvidia");
}

TEST(VfioBind, DryRunChangesNothing) {
  const Machine machine("vfio");
  const auto run = vfio(machine, {"bind", kHosts, "--dry-run", "--json"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\"dryRun\": true"), HasSubstr("\"changed\": false"),
                             HasSubstr("unbind 0000:84:00.0 from nvidia")));
  EXPECT_EQ(driver_of(machine, kHosts), "nvidia");
  EXPECT_FALSE(machine.host().exists("/run/gantry/vfio"));
}

TEST(VfioBind, NamesTheProcessThatUsesTheGpu) {
  Machine machine("vfio");
  machine.file("/proc/4711/comm", "python3\n").file("/proc/4711/cmdline", "python3 train.py");
  machine.link("/proc/4711/fd/5", "/dev/nvidia0");
  const auto run = vfio(machine, {"bind", kHosts});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("0000:84:00.0 is held by process 4711 (python3 train.py) "
                                       "with /dev/nvidia0 open"),
                             HasSubstr("--drain")));
  EXPECT_EQ(driver_of(machine, kHosts), "nvidia");
}

TEST(VfioBind, PersistsTheCardAndRestoreRefusesAnotherOne) {
  Machine machine("vfio");
  machine.file("/run/systemd/system/.keep", "");
  const auto bound = vfio(machine, {"bind", kHosts, "--persist"});
  ASSERT_EQ(bound.status, 0) << bound.err;
  EXPECT_THAT(vfio(machine, {"status"}).out, HasSubstr("0000:84:00.0 is bound at every boot"));
  EXPECT_EQ(vfio(machine, {"restore"}).status, 0);

  const auto device = *machine.host().resolve("/sys/bus/pci/devices/0000:84:00.0") + "/device";
  machine.file(device, "0x2335\n");
  const auto other = vfio(machine, {"restore"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, AllOf(HasSubstr("holds another card"),
                               HasSubstr("gantry vfio release --root " + machine.root())));
  machine.file(device, "0x15f8\n");
  EXPECT_EQ(vfio(machine, {"release", kHosts}).status, 0);
  EXPECT_FALSE(machine.host().exists("/etc/systemd/system/gantry-vfio.service"));
  EXPECT_FALSE(machine.host().exists("/etc/gantry/vfio.json"));
}

TEST(VfioBind, PersistIsRefusedBeforeTheDriverChanges) {
  Machine machine("vfio");
  for (const auto* path :
       {"/run/systemd/system", "/usr/lib/systemd/systemd", "/lib/systemd/systemd"}) {
    if (machine.host().exists(path)) machine.remove(path);
  }
  const auto run = vfio(machine, {"bind", kHosts, "--persist"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("--persist needs systemd"));
  EXPECT_EQ(driver_of(machine, kHosts), "nvidia");
}

TEST(VfioRelease, AGpuThatIsNamedTwiceIsReleasedOnce) {
  const Machine machine("vfio");
  ASSERT_EQ(vfio(machine, {"bind", kHosts}).status, 0);
  const auto run = vfio(machine, {"release", kHosts, "84:00.0"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(driver_of(machine, kHosts), "nvidia");
}

TEST(VfioPlan, TheCommandHasTheOptionsOfThePlan) {
  const Machine machine("vfio");
  const auto run = vfio(machine, {"plan", kHosts, "--with-nvswitches"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr(" --with-nvswitches 0000:84:00.0"));
}

TEST(VfioPlan, JsonNamesTheRootInItsRemedies) {
  Machine machine("vfio");
  machine.file("/run/gantry/vfio/0000:84:00.0.journal",
               R"({"version":1,"kind":"bind","targets":["0000:84:00.0"],"moves":[{"address":)"
               R"("0000:84:00.0","target":"0000:84:00.0","fromDriver":"nvidia","fromOverride":"",)"
               R"("toDriver":"vfio-pci","toOverride":"vfio-pci"}],"modules":[],"services":[],)"
               R"("persistence":[],"nodes":[],"step":0,"backwards":false,"stuck":[]})");
  const auto run = vfio(machine, {"plan", kHosts, "--json"});
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\"code\": \"unfinished\""),
                             HasSubstr("gantry vfio recover --root " + machine.root())));
}

TEST(VfioRecover, FindsNothingToDo) {
  const Machine machine("vfio");
  const auto run = vfio(machine, {"recover"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("no work is unfinished"));
}

// A release that was killed when the GPU had left vfio-pci.
TEST(VfioRecover, OfAReleaseAlsoForgetsTheCard) {
  Machine machine("vfio");
  machine.file("/run/systemd/system/.keep", "");
  ASSERT_EQ(vfio(machine, {"bind", kHosts, "--persist"}).status, 0);
  const auto host = machine.host();
  const auto record = vfio::read_bound(host, *model::PciAddress::parse(kHosts));
  ASSERT_TRUE(record.ok() && *record);
  auto journal = **record;
  journal.kind = "release";
  for (auto& move : journal.moves) {
    std::swap(move.from_driver, move.to_driver);
    std::swap(move.from_override, move.to_override);
    const auto device = pci::device_path(move.address);
    ASSERT_TRUE(sim::write_sysfs(host, device + "/driver_override", "\n").ok());
    ASSERT_TRUE(sim::write_sysfs(host, device + "/driver/unbind", move.address.sysfs()).ok());
  }
  while (!vfio::is_past_unbind(journal)) ++journal.step;
  machine.file(vfio::journal_path(journal), vfio::to_json(journal));

  const auto run = vfio(machine, {"recover"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(driver_of(machine, kHosts), "nvidia");
  EXPECT_FALSE(host.exists("/etc/gantry/vfio.json"));
}

TEST(VfioStatus, ShowsWorkThatDidNotEnd) {
  Machine machine("vfio");
  machine.file("/run/gantry/vfio/0000:84:00.0.journal",
               R"({"version":1,"kind":"bind","targets":["0000:84:00.0"],"moves":[],"modules":[],)"
               R"("services":[],"persistence":[],"nodes":[],"step":0,"backwards":true,)"
               R"("stuck":["0000:84:00.0"]})");
  const auto run = vfio(machine, {"status"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("stuck in the kernel"));
  EXPECT_THAT(run.err, HasSubstr("gantry vfio recover"));
}

TEST(VfioBind, ATreeThatIsNotAMachineIsRefused) {
  Machine machine("vfio");
  machine.remove("/.gantry-sim");
  const auto run = vfio(machine, {"bind", kHosts});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("not a running machine"));
  EXPECT_EQ(vfio(machine, {"bind", kHosts, "--dry-run"}).status, 0);
}

TEST(Vfio, AWrongNameNamesTheListThatHelps) {
  const Machine machine("vfio");
  const auto run = vfio(machine, {"plan", "0000:99:00.0"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("0000:99:00.0 is not on the PCI bus"),
                             HasSubstr("gantry vfio list")));
  EXPECT_THAT(run.err, Not(HasSubstr("gantry vfio plan: gantry")));
}

}  // namespace
}  // namespace gantry::cli
