// SPDX-License-Identifier: Apache-2.0
// Kata and KubeVirt take the nodes and names of vGPUs that we print.
#include "support/peer_answers.hpp"
#include "vm/vgpu/holders.hpp"
#include "vm/vgpu/vgpu_machine_for_test.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace gantry::vgpu {
namespace {

std::vector<VgpuGpu> gpus_with_one(VgpuMachine& machine, const std::string& type) {
  const auto made = create(machine.host(), {.gpu = first_gpu(), .type = type}, machine.actions());
  EXPECT_TRUE(made.ok()) << made.error().text();
  return machine.gpus();
}

// Of a mediated device Kata takes the parent if it gets the node below /dev/vfio/devices.
TEST(VgpuPeers, WePrintTheNodeThatKataTakesForTheVgpu) {
  const auto answers = test::peer_answers("kata-vgpu");
  ASSERT_FALSE(answers.empty());
  for (const auto& words : answers) {
    VgpuMachine machine(words.at(0));
    const auto gpus = gpus_with_one(machine, words.at(1));
    ASSERT_EQ(gpus.at(0).vgpus.size(), 1U);
    const auto& vgpu = gpus[0].vgpus[0];
    const bool right = vgpu.uuid.empty() ? words.at(3) == "pci" && words.at(4) == vgpu.id()
                                         : words.at(3) == "mdev";
    if (words.at(2) == vfio_node(vgpu)) {
      EXPECT_TRUE(right) << words[0];
    } else {
      EXPECT_EQ(right, vgpu.uuid.empty()) << words[0];
    }
  }
}

TEST(VgpuPeers, KubeVirtOffersTheVirtualFunctionOnceWeSetItsType) {
  VgpuMachine machine("vgpu-l40s");
  const auto gpus = gpus_with_one(machine, "L40S-12Q");
  ASSERT_EQ(gpus.at(0).vgpus.size(), 1U);
  const auto type = machine.host().read_value(
      "/sys/bus/pci/devices/" + gpus[0].vgpus[0].parent.sysfs() + "/nvidia/current_vgpu_type");
  ASSERT_TRUE(type);
  const auto answers = test::peer_answers("kubevirt-vendor-vfio");
  EXPECT_TRUE(std::any_of(answers.begin(), answers.end(), [&](const auto& words) {
    return words.at(1) == *type && words.at(2) == "yes";
  })) << *type;
}

TEST(VgpuPeers, KubeVirtNamesATypeAsWeDoWithUnderscores) {
  const auto answers = test::peer_answers("kubevirt-mdev");
  ASSERT_FALSE(answers.empty());
  for (const auto& words : answers) {
    VgpuMachine machine(words.at(0));
    const auto gpus = gpus_with_one(machine, words.at(1));
    const auto* type = gpus.at(0).find_type(words[1]);
    ASSERT_NE(type, nullptr) << words[1];
    auto name = type->name;
    std::replace(name.begin(), name.end(), ' ', '_');
    EXPECT_EQ(name, words.at(2));
  }
}

}  // namespace
}  // namespace gantry::vgpu
