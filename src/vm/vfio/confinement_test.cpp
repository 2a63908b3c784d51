// SPDX-License-Identifier: Apache-2.0
// docs/vm.md says which files a confined service that runs `gantry vfio bind` must be allowed to
// write, as rules of AppArmor. bind and release write no others, and no rule is unused.
#include "base/core/text.hpp"
#include "support/paths.hpp"
#include "vm/vfio/host_for_test.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

namespace gantry::vfio {
namespace {

using test_host::at;
using test_host::kGpu;
using test_host::Script;
using test_host::TestHost;

// "*" stays in a directory, "**" does not.
bool allows(std::string_view rule, std::string_view path) {
  if (rule.empty()) return path.empty();
  if (rule.starts_with("*")) {
    const bool deep = rule.starts_with("**");
    const auto rest = rule.substr(deep ? 2 : 1);
    for (std::size_t n = 0; n <= path.size(); ++n) {
      if (allows(rest, path.substr(n))) return true;
      if (n < path.size() && path[n] == '/' && !deep) return false;
    }
    return false;
  }
  return !path.empty() && rule.front() == path.front() && allows(rule.substr(1), path.substr(1));
}

// The rules of the last block of the page that allow writing.
std::vector<std::string> write_rules() {
  const auto page = sys::Host::at(test::source_dir())->read("/docs/vm.md").value_or("");
  std::vector<std::string> rules;
  for (const auto line :
       lines(std::string_view(page).substr(page.find("are the files that it writes")))) {
    const auto words = split(line, ' ');
    if (words.size() == 2 && words[0].starts_with('/') && words[1].find('w') != words[1].npos)
      rules.emplace_back(words[0]);
  }
  return rules;
}

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

TEST_F(Confinement, TheRulesOfThePageAreThoseThatBindAndReleaseNeed) {
  ASSERT_TRUE(test_host::bind_gpu(machine_, script_).ok());
  ASSERT_TRUE(test_host::release_gpu(machine_, script_).ok());
  note("/sys/bus/pci/drivers_probe");  // for a function that had no driver before
  note("/etc/gantry/vfio.json");       // release forgets --persist
  const auto rules = write_rules();
  EXPECT_EQ(rules.size(), 8U);
  const auto allowed_by = [](const std::string& path) {
    return [&path](const std::string& rule) { return allows(rule, path); };
  };
  for (const auto& path : written_)
    EXPECT_TRUE(std::any_of(rules.begin(), rules.end(), allowed_by(path))) << path;
  for (const auto& rule : rules) {
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
  EXPECT_FALSE(allows("/run/gantry/vfio/**", "/run/gantry/owner.sock"));
}

}  // namespace
}  // namespace gantry::vfio
