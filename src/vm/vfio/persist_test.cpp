// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/persist.hpp"

#include "vm/vfio/bind.hpp"
#include "vm/vfio/host_for_test.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace gantry::vfio {
namespace {

using test_host::at;
using test_host::kGpu;
using test_host::kTwin;
using test_host::Script;
using test_host::scripted_effects;
using test_host::TestHost;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kProgram = "/opt/gantry/bin/gantry";

// Every file, link and directory of /etc with its content.
std::map<std::string, std::string> etc_of(const TestHost& machine) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> all;
  const auto etc = machine.root() + "/etc";
  if (!fs::exists(etc)) return all;
  all["."] = "";
  for (const auto& entry : fs::recursive_directory_iterator(etc)) {
    std::string content = "directory";
    if (entry.is_symlink()) {
      content = "-> " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      std::ifstream in(entry.path());
      content.assign(std::istreambuf_iterator<char>(in), {});
    }
    all[entry.path().string()] = content;
  }
  return all;
}

Result<std::vector<std::string>> persist_gpu(const TestHost& machine, const char* gpu = kGpu) {
  const auto host = machine.host();
  Script script;
  return persist(host, {at(gpu)}, kProgram, scripted_effects(host, script));
}

Result<bool> forget_gpu(const TestHost& machine, const char* gpu = kGpu) {
  const auto host = machine.host();
  Script script;
  return forget(host, {at(gpu)}, scripted_effects(host, script));
}

TEST(Persist, NamesTheCardByAddressIdsAndSerialAndEnablesAnEarlyUnit) {
  TestHost machine;
  machine.file(std::string("sys/devices/pci0000:00/") + kGpu + "/serial_number",
               "48-B0-2D-01-02-03-04-05\n");
  const auto notes = persist_gpu(machine);
  ASSERT_TRUE(notes.ok()) << notes.error().text();
  EXPECT_THAT(*notes, IsEmpty());
  const auto state = read_persisted(machine.host());
  ASSERT_TRUE(state.ok()) << state.error().text();
  ASSERT_EQ(state->cards.size(), 1U);
  EXPECT_EQ(state->cards[0].id.serial, "48-b0-2d-01-02-03-04-05");
  EXPECT_EQ(state->cards[0].id.device, 0x2236);
  const auto host = machine.host();
  EXPECT_THAT(*host.read("/etc/systemd/system/gantry-vfio.service"),
              AllOf(HasSubstr("ExecStart=/opt/gantry/bin/gantry vfio restore\n"),
                    HasSubstr("Before=systemd-udev-trigger.service")));
  EXPECT_TRUE(host.exists("/etc/systemd/system/sysinit.target.wants/gantry-vfio.service"));
}

TEST(Persist, ACardWithoutASerialNumberIsANote) {
  TestHost machine;
  const auto notes = persist_gpu(machine);
  ASSERT_TRUE(notes.ok());
  EXPECT_THAT(*notes, ElementsAre(HasSubstr("0000:3b:00.0 shows no serial number")));
}

TEST(Forget, LeavesEtcAsItWasByteForByte) {
  TestHost bare;
  const auto nothing = etc_of(bare);
  ASSERT_TRUE(persist_gpu(bare).ok());
  EXPECT_NE(etc_of(bare), nothing);
  ASSERT_TRUE(*forget_gpu(bare));
  EXPECT_EQ(etc_of(bare), nothing);

  TestHost used;  // other programs have files in the same directories
  used.file("etc/gantry/config.toml", "[gantry]\n");
  used.file("etc/systemd/system/sysinit.target.wants/other.service", "x");
  const auto before = etc_of(used);
  ASSERT_TRUE(persist_gpu(used).ok());
  ASSERT_TRUE(*forget_gpu(used));
  EXPECT_EQ(etc_of(used), before);
}

TEST(Forget, KeepsTheUnitWhileAnotherCardNeedsIt) {
  TestHost machine;
  const auto before = etc_of(machine);
  ASSERT_TRUE(persist_gpu(machine).ok());
  ASSERT_TRUE(persist_gpu(machine, kTwin).ok());
  ASSERT_TRUE(*forget_gpu(machine));
  EXPECT_TRUE(machine.host().exists("/etc/systemd/system/gantry-vfio.service"));
  EXPECT_EQ(read_persisted(machine.host())->cards.size(), 1U);
  EXPECT_FALSE(*forget_gpu(machine)) << "it is not persisted any more";
  ASSERT_TRUE(*forget_gpu(machine, kTwin));
  EXPECT_EQ(etc_of(machine), before);
}

TEST(Persist, AUnitOfTheAdministratorStays) {
  TestHost machine;
  machine.file("etc/systemd/system/gantry-vfio.service", "mine\n");
  const auto before = etc_of(machine);
  ASSERT_TRUE(persist_gpu(machine).ok());
  EXPECT_EQ(*machine.host().read("/etc/systemd/system/gantry-vfio.service"), "mine\n");
  ASSERT_TRUE(*forget_gpu(machine));
  EXPECT_EQ(etc_of(machine), before);
}

TEST(Persist, WithoutSystemdIsUnsupported) {
  TestHost machine;
  machine.tree().remove("run/systemd");
  const auto notes = persist_gpu(machine);
  ASSERT_FALSE(notes.ok());
  EXPECT_EQ(notes.error().code(), Errc::Unsupported);
}

TEST(CheckPersist, FailsWithoutSystemdAndWithADamagedList) {
  TestHost machine;
  EXPECT_TRUE(check_persist(machine.host(), kProgram).ok());
  machine.file("etc/gantry/vfio.json", "{");
  EXPECT_EQ(check_persist(machine.host(), kProgram).error().code(), Errc::Corrupt);
  machine.tree().remove("run/systemd");
  EXPECT_EQ(check_persist(machine.host(), kProgram).error().code(), Errc::Unsupported);
}

TEST(CheckPersisted, RefusesAnotherCardInTheSlot) {
  TestHost machine;
  const auto serial = std::string("sys/devices/pci0000:00/") + kGpu + "/serial_number";
  machine.file(serial, "01-00-00-00-00-00-00-01\n");
  ASSERT_TRUE(persist_gpu(machine).ok());
  const auto card = read_persisted(machine.host())->cards.at(0);
  EXPECT_TRUE(check_persisted(machine.host(), card).ok());

  machine.file(serial, "01-00-00-00-00-00-00-02\n");  // a twin: same ids, another serial number
  const auto twin = check_persisted(machine.host(), card);
  ASSERT_FALSE(twin.ok());
  EXPECT_EQ(twin.error().code(), Errc::Denied);
  EXPECT_THAT(twin.error().text(), AllOf(HasSubstr("0000:3b:00.0 holds another card"),
                                         HasSubstr("gantry vfio release 0000:3b:00.0")));

  machine.tree().remove(std::string("sys/bus/pci/devices/") + kGpu);
  EXPECT_EQ(check_persisted(machine.host(), card).error().code(), Errc::NotFound);
}

TEST(Persisted, AForeignPathInTheFileIsNotRemoved) {
  const auto state = parse_persisted(R"({"version":1,"cards":[],"created":["/etc/passwd"]})");
  ASSERT_FALSE(state.ok());
  EXPECT_EQ(state.error().code(), Errc::Corrupt);
}

}  // namespace
}  // namespace gantry::vfio
