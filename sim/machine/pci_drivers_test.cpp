// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/pci_drivers.hpp"

#include "support/machine.hpp"

#include <gmock/gmock.h>

#include <cerrno>

namespace gantry::sim {
namespace {

constexpr const char* kFirst = "0000:04:00.0";   // on vfio-pci by its override
constexpr const char* kSecond = "0000:84:00.0";  // an equal card on nvidia

std::string device(const char* name, const char* file) {
  return std::string("/sys/bus/pci/devices/") + name + "/" + file;
}

std::string driver(const test::Machine& machine, const char* name) {
  const auto link = machine.host().link(device(name, "driver"));
  return link.ok() ? link->substr(link->rfind('/') + 1) : "";
}

TEST(WriteSysfs, BindsOnlyTheDriverOfTheOverride) {
  const test::Machine machine("vfio");
  const auto host = machine.host();
  ASSERT_TRUE(write_sysfs(host, device(kSecond, "driver_override"), "vfio-pci\n").ok());
  EXPECT_EQ(driver(machine, kSecond), "nvidia") << "an override does not unbind";
  ASSERT_TRUE(write_sysfs(host, device(kSecond, "driver/unbind"), kSecond).ok());
  EXPECT_EQ(driver(machine, kSecond), "");
  EXPECT_FALSE(host.exists("/proc/driver/nvidia/gpus/0000:84:00.0"));
  const auto refused = write_sysfs(host, "/sys/bus/pci/drivers/nvidia/bind", kSecond);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().sys_errno(), ENODEV);
  ASSERT_TRUE(write_sysfs(host, "/sys/bus/pci/drivers_probe", kSecond).ok());
  EXPECT_EQ(driver(machine, kSecond), "vfio-pci");
  EXPECT_TRUE(host.exists("/dev/vfio/41"));
  const auto busy = write_sysfs(host, "/sys/bus/pci/drivers/vfio-pci/bind", kSecond);
  ASSERT_FALSE(busy.ok());
  EXPECT_EQ(busy.error().sys_errno(), EBUSY);
}

TEST(WriteSysfs, UnbindFromAnotherDriverIsEnodev) {
  const test::Machine machine("vfio");
  const auto wrong = write_sysfs(machine.host(), "/sys/bus/pci/drivers/vfio-pci/unbind", kSecond);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().sys_errno(), ENODEV);
  EXPECT_EQ(driver(machine, kSecond), "nvidia");
}

TEST(WriteSysfs, NewIdTakesEveryEqualCardWithoutADriver) {
  const test::Machine machine("vfio");
  const auto host = machine.host();
  for (const auto* card : {kFirst, kSecond}) {
    ASSERT_TRUE(write_sysfs(host, device(card, "driver_override"), "\n").ok());
    ASSERT_TRUE(write_sysfs(host, device(card, "driver/unbind"), card).ok());
  }
  ASSERT_TRUE(write_sysfs(host, "/sys/bus/pci/drivers/vfio-pci/new_id", "10de 15f8").ok());
  EXPECT_EQ(driver(machine, kFirst), "vfio-pci");
  EXPECT_EQ(driver(machine, kSecond), "vfio-pci");
}

TEST(LoadPciDriver, AnUnknownModuleIsNotFound) {
  const test::Machine machine("vfio");
  const auto loaded = load_pci_driver(machine.host(), "no_such_module");
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code(), Errc::NotFound);
}

}  // namespace
}  // namespace gantry::sim
