// SPDX-License-Identifier: Apache-2.0
// Kata and KubeVirt take the addresses and nodes that we print, or we warn.
#include "support/peer_answers.hpp"
#include "vm/vfio/host_for_test.hpp"
#include "vm/vfio/plan.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

namespace gantry::vfio {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// The machine on which the peers were asked.
class VfioPeers : public testing::Test {
 protected:
  VfioPeers() {
    for (const auto& words : test::peer_answers("function")) {
      machine_.add({.address = words.at(0),
                    .device = words.at(2),
                    .class_code = words.at(3),
                    .driver = words.at(4) == "-" ? "" : words.at(4),
                    .group = std::stoi(words.at(5)),
                    .vendor = words.at(1)});
      if (words.at(6) == "-") continue;
      machine_.file(
          fmt::format("sys/devices/pci0000:00/{}/vfio-dev/{}/dev", words.at(0), words.at(6)),
          "511:0\n");
    }
    auto state = read_machine_state(machine_.host());
    EXPECT_TRUE(state.ok()) << state.error().text();
    state_ = std::move(*state);
  }

  const pci::Function& function(const std::string& address) const {
    const auto* found = state_.bus.find(test_host::at(address));
    EXPECT_NE(found, nullptr) << address;
    return *found;
  }

  Plan plan(const std::vector<model::PciAddress>& targets) const {
    return plan_passthrough(state_, {.targets = targets});
  }

  bool warns_of_domain(const model::PciAddress& address) const {
    const auto findings = plan({address}).findings;
    return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.code == FindingCode::WideDomain && finding.severity == Severity::Warning;
    });
  }

  test_host::TestHost machine_;
  MachineState state_;
};

TEST_F(VfioPeers, KubeVirtReadsOurAddressesOrWeWarn) {
  const auto answers = test::peer_answers("kubevirt-address");
  ASSERT_FALSE(answers.empty());
  for (const auto& words : answers) {
    const auto address = model::PciAddress::parse(words.at(0));
    ASSERT_TRUE(address) << words[0];
    if (address->sysfs() != words[0]) continue;  // a form that we read but do not print
    if (words.at(1) == "yes") {
      EXPECT_LE(address->domain, 0xffffU) << words[0];
    } else {
      EXPECT_TRUE(warns_of_domain(*address)) << words[0];
    }
  }
}

TEST_F(VfioPeers, KataTakesOurPaths) {
  std::vector<std::string> refused;
  for (const auto& words : test::peer_answers("kata-path")) {
    if (words.at(1) == "no") refused.push_back(words[0]);
  }
  ASSERT_FALSE(refused.empty());
  for (const auto& found : state_.bus.functions) {
    for (const auto& node : device_nodes(state_, found)) EXPECT_THAT(refused, Not(Contains(node)));
  }
}

TEST_F(VfioPeers, KataGivesTheGuestEveryFunctionThatWeBind) {
  const auto answers = test::peer_answers("kata-group");
  ASSERT_FALSE(answers.empty());
  for (const auto& words : answers) {
    const std::vector<std::string> given(words.begin() + 1, words.end());
    std::vector<std::string> bound;
    std::vector<model::PciAddress> targets;
    for (const auto& found : state_.bus.functions) {
      if (fmt::format("/dev/vfio/{}", found.iommu_group.value_or(-1)) != words.at(0)) continue;
      if (found.is_gpu() || found.is_nvswitch()) targets.push_back(found.address);
    }
    for (const auto& planned : plan(targets).functions) {
      bound.push_back(planned.address.sysfs());
      EXPECT_THAT(given, Contains(bound.back())) << words[0];
      EXPECT_THAT(device_nodes(state_, function(bound.back())), Contains(words[0]));
    }
    for (const auto& address : given) {
      if (address == "-" || testing::Value(bound, Contains(address))) continue;
      EXPECT_EQ(function(address).driver, "") << "docs/vm.md says: neighbours without a driver";
    }
  }
}

TEST_F(VfioPeers, KataFindsTheFunctionOfOurNodeOrWeWarn) {
  const auto answers = test::peer_answers("kata-node");
  ASSERT_FALSE(answers.empty());
  for (const auto& words : answers) {
    if (words.at(1) == "error") continue;  // a device number above 255: Kata refuses by itself
    const auto& all = state_.bus.functions;
    const auto ours = std::find_if(all.begin(), all.end(), [&](const pci::Function& found) {
      return testing::Value(device_nodes(state_, found), Contains(words.at(0)));
    });
    ASSERT_NE(ours, all.end()) << words[0];
    const bool same = ours->address.sysfs() == words[1];
    EXPECT_EQ(warns_of_domain(ours->address), !same) << words[0];
    if (same) continue;
    EXPECT_THAT(plan({ours->address}).findings,
                Contains(testing::Field(&Finding::text, HasSubstr("for " + words[1]))));
  }
}

TEST_F(VfioPeers, KubeVirtGivesAMachineTheNodesThatWeName) {
  const auto answers = test::peer_answers("kubevirt-offer");
  ASSERT_FALSE(answers.empty());
  for (const auto& words : answers) {
    const auto& found = function(words.at(0));
    const std::vector<std::string> given(words.begin() + 1, words.end());
    if (given.front() == "-") {
      const auto* group = state_.bus.group(found.iommu_group.value_or(-1));
      ASSERT_NE(group, nullptr) << words[0];
      EXPECT_TRUE(found.driver != "vfio-pci" || group->members.size() > 1) << words[0];
    } else {
      EXPECT_EQ(device_nodes(state_, found), given) << words[0];
    }
  }
}

}  // namespace
}  // namespace gantry::vfio
