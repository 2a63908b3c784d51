// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/all_checks.hpp"
#include "doctor/checks/machine_for_test.hpp"

#include <gmock/gmock.h>

namespace gantry::doctor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(VgpuDrivers, ArePutIntoWordsWithThePackage) {
  TestMachine plain;
  plain.tree.file("usr/bin/nvidia-vgpud")
      .file("var/lib/dpkg/status",
            "Package: nvidia-kernel-common\nStatus: install ok installed\n\n"
            "Package: nvidia-driver-550\nStatus: install ok installed\n\n"
            "Package: nvidia-vgpu-ubuntu-550\nStatus: deinstall ok config-files\n");
  EXPECT_THAT(plain.look(*find_check("vgpu.plain-driver")).summary,
              AllOf(HasSubstr("package nvidia-driver-550"), HasSubstr("has no vGPUs")));
  TestMachine host;
  host.inventory.files.clear();
  host.tree.directory("sys/module/nvidia_vgpu_vfio")
      .file("etc/docker/daemon.json", "{\"runtimes\":{\"nvidia\":{}}}")
      .file("var/lib/dpkg/status",
            "Package: nvidia-vgpu-ubuntu-550\nStatus: install ok installed\n");
  const auto finding = host.look(*find_check("vgpu.host-driver"));
  EXPECT_THAT(finding.summary,
              AllOf(HasSubstr("package nvidia-vgpu-ubuntu-550"), HasSubstr("has no CUDA")));
  EXPECT_THAT(std::string(find_check("vgpu.host-driver")->remedy), HasSubstr("gantry share"));
  for (const auto* id : {"vgpu.plain-driver", "vgpu.host-driver"})
    EXPECT_THAT(std::string(find_check(id)->cause), HasSubstr("EAS-58343"));
}

}  // namespace
}  // namespace gantry::doctor
