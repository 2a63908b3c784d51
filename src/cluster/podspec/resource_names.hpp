// SPDX-License-Identifier: Apache-2.0
// Names of extended resources in a container's limits. No API server and no kubelet complains about
// a name that no node offers, and the pod waits for ever. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::podspec {

enum class ResourceClass : std::uint8_t {
  Other,    // has nothing to do with NVIDIA's GPUs: cpu, rdma/hca, amd.com/gpu
  Known,    // offered by Gantry, or by a program whose names Gantry keeps
  Unknown,  // below nvidia.com/: only a device plugin with such a configuration offers it
  Misspelt  // close to a known name
};

struct ResourceName {
  ResourceClass kind = ResourceClass::Other;
  std::string meant;  // Unknown and Misspelt: the known name that fits best; "": none does
  bool operator==(const ResourceName&) const = default;
};

// Known are nvidia.com/gpu, gpu.shared and mig-PROFILE; HAMi's gpumem, gpumem-percentage, gpucores
// and priority; pgpu, vgpu and names such as nvidia.com/GA100_A100_PCIE_40GB, which KubeVirt and
// Kata Containers use; gpushare's aliyun.com/gpu-mem and gpu-count; gantry.dev/share; the name of
// 2017; and device classes of NVIDIA's DRA driver.
ResourceName classify_resource(std::string_view name);

}  // namespace gantry::podspec
