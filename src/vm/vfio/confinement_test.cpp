// SPDX-License-Identifier: Apache-2.0
// docs/vm.md says which files a confined service that runs `gantry vfio bind` must be allowed to
// write, as rules of AppArmor. Here are the kernel's files: bind and release write no others, and
// no rule for them is unused.
#include "support/confinement_rules.hpp"
#include "vm/vfio/host_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

namespace gantry::vfio {
namespace {

using test::allows;
using test_host::kGpu;
using test_host::Script;
using test_host::TestHost;

class Confinement : public testing::Test {
 protected:
  Confinement() {
    machine_.file(fmt::format("proc/driver/nvidia/gpus/{}/unbindLock", kGpu), "1\n");
    script_.rule = [this](const std::string& entry) -> Status {
      const auto words = split(entry, ' ');
      if (words[0] != "run" && words[0] != "modprobe") note(words[1]);
      return {};
    };
  }
  // AppArmor sees the path without symlinks.
  void note(std::string_view path) {
    const auto host = machine_.host();
    const auto slash = path.rfind('/');
    const std::string parent(path.substr(0, slash));
    const auto directory = host.resolve(parent).value_or(parent);
    written_.insert(directory + std::string(path.substr(slash)));
  }

  TestHost machine_;
  Script script_;
  std::set<std::string> written_;
};

TEST_F(Confinement, TheRulesForTheKernelsFilesAreThoseThatBindAndReleaseNeed) {
  ASSERT_TRUE(test_host::bind_gpu(machine_, script_).ok());
  ASSERT_TRUE(test_host::release_gpu(machine_, script_).ok());
  note("/sys/bus/pci/drivers_probe");  // for a function that had no driver before
  const auto all = test::write_rules({"/"});
  for (const auto& path : written_) EXPECT_TRUE(test::any_allows(all, path)) << path;
  const auto of_kernel = test::write_rules({"/sys/", "/proc/"});
  EXPECT_EQ(of_kernel.size(), 6U);
  for (const auto& rule : of_kernel) {
    EXPECT_TRUE(std::any_of(written_.begin(), written_.end(), [&](const std::string& path) {
      return allows(rule, path);
    })) << rule;
  }
}

TEST_F(Confinement, ARuleStaysInItsDirectory) {
  EXPECT_TRUE(allows("/sys/bus/pci/drivers/*/bind", "/sys/bus/pci/drivers/nvidia/bind"));
  EXPECT_FALSE(allows("/sys/bus/pci/drivers/*/bind", "/sys/bus/pci/drivers/a/b/bind"));
  EXPECT_TRUE(allows("/sys/devices/pci*/**/driver_override",
                     "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/driver_override"));
  EXPECT_FALSE(allows("/run/gantry/vfio/*", "/run/gantry/owner.sock"));
  EXPECT_FALSE(allows("/run/gantry/vfio/*", "/run/gantry/vfio/"));
  EXPECT_TRUE(allows("/etc/gantry/*vfio.json*", "/etc/gantry/.vfio.json.gantry"));
}

}  // namespace
}  // namespace gantry::vfio
