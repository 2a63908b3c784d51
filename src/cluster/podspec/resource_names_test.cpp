// SPDX-License-Identifier: Apache-2.0
#include "cluster/podspec/resource_names.hpp"

#include <gtest/gtest.h>

namespace gantry::podspec {
namespace {

TEST(ResourceNames, KnowsEveryNameThatAPluginOffers) {
  for (const auto* name : {"nvidia.com/gpu",
                           "nvidia.com/gpu.shared",
                           "nvidia.com/mig-1g.5gb",
                           "nvidia.com/mig-1g.18gb.shared",
                           "nvidia.com/mig-1c.2g.20gb",
                           "nvidia.com/mig-1g.10gb.me",
                           "nvidia.com/gpumem",
                           "nvidia.com/gpumem-percentage",
                           "nvidia.com/gpucores",
                           "nvidia.com/priority",
                           "nvidia.com/pgpu",
                           "nvidia.com/vgpu",
                           "nvidia.com/imex-channel",
                           "nvidia.com/GA100_A100_PCIE_40GB",
                           "nvidia.com/GRID_T4-1Q",
                           "aliyun.com/gpu-mem",
                           "aliyun.com/gpu-count",
                           "gantry.dev/share",
                           "alpha.kubernetes.io/nvidia-gpu",
                           "deviceclass.resource.kubernetes.io/gpu.nvidia.com"})
    EXPECT_EQ(classify_resource(name).kind, ResourceClass::Known) << name;
}

TEST(ResourceNames, LeavesOtherPeoplesNamesAlone) {
  for (const auto* name :
       {"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "amd.com/gpu", "intel.com/gpu",
        "gpu.intel.com/i915", "rdma/hca", "volcano.sh/vgpu-number", "aliyun.com/eni",
        "deviceclass.resource.kubernetes.io/gpu.example.com", "example.com/dongle", "", "/"})
    EXPECT_EQ(classify_resource(name), ResourceName{}) << name;
}

TEST(ResourceNames, SaysWhichNameWasMeant) {
  const auto meant = [](std::string_view name, std::string_view right) {
    EXPECT_EQ(classify_resource(name), (ResourceName{ResourceClass::Misspelt, std::string(right)}))
        << name;
  };
  meant("nvidia.com/gpus", "nvidia.com/gpu");
  meant("nvidia.com/GPU", "nvidia.com/gpu");
  meant("nvidia.com/gup", "nvidia.com/gpu");
  meant("nvidia.com/gpu0", "nvidia.com/gpu");
  meant("nvidia.com/gpu-mem", "nvidia.com/gpumem");
  meant("nvidia.com/gpu-cores", "nvidia.com/gpucores");
  meant("nvidia.com/MIG-1g.5gb", "nvidia.com/mig-1g.5gb");
  meant("nvidia.com/mig-1g5gb", "nvidia.com/mig-1g.10gb");
  meant("nvida.com/gpu", "nvidia.com/gpu");
  meant("nividia.com/gpu", "nvidia.com/gpu");
  meant("nvidia.con/gpu.shared", "nvidia.com/gpu.shared");
  meant("NVIDIA.com/gpu", "nvidia.com/gpu");
  meant("nvidia.io/gpu", "nvidia.com/gpu");
  meant("requests.nvidia.com/gpu", "nvidia.com/gpu");
  meant("gpu", "nvidia.com/gpu");
  meant("nvidia-gpu", "nvidia.com/gpu");
  meant("nvidia.com.gpu", "nvidia.com/gpu");
  meant("aliyun.com/gpumem", "aliyun.com/gpu-mem");
  meant("aliyn.com/gpu-mem", "aliyun.com/gpu-mem");
  meant("gantry.dev/shares", "gantry.dev/share");
  meant("gantry.dev/compute", "");  // an annotation
}

TEST(ResourceNames, AConfiguredNameIsUnknownOnly) {
  EXPECT_EQ(classify_resource("nvidia.com/a100"),
            (ResourceName{ResourceClass::Unknown, "nvidia.com/gpu"}));
  EXPECT_EQ(classify_resource("nvidia.com/gpu-memory"),
            (ResourceName{ResourceClass::Unknown, "nvidia.com/gpumem"}));
  EXPECT_EQ(classify_resource("nvidia.com/" + std::string(100'000, 'x')).kind,
            ResourceClass::Unknown);
}

}  // namespace
}  // namespace gantry::podspec
