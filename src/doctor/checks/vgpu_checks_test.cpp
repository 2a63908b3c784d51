// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/all_checks.hpp"
#include "doctor/checks/machine_for_test.hpp"

#include <gmock/gmock.h>

namespace gantry::doctor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(VgpuDrivers, AreFoundAmongRpmsToo) {
  TestMachine plain;
  plain.tree.file("usr/bin/nvidia-vgpud");
  int lists = 0;
  plain.sources.program_output = [&](const std::vector<std::string>& argv) {
    lists += argv.front() == "rpm" ? 1 : 0;
    return argv.front() == "rpm" ? std::optional<std::string>(
                                       "bash\nkmod-nvidia-latest-dkms\n"
                                       "nvidia-driver-cuda\n")
                                 : std::nullopt;
  };
  EXPECT_THAT(plain.look(*find_check("vgpu.plain-driver")).summary,
              HasSubstr("(package nvidia-driver-cuda) is the plain driver"));
  EXPECT_EQ(lists, 1) << "rpm takes a second on a large system";
  TestMachine host;
  host.inventory.files.clear();
  host.tree.directory("sys/module/nvidia_vgpu_vfio").file("etc/cdi/nvidia.yaml");
  host.sources.program_output = [](const std::vector<std::string>&) {
    return std::optional<std::string>("NVIDIA-vGPU-rhel-9.4\nnvidia-driver-libs\n");
  };
  EXPECT_THAT(host.look(*find_check("vgpu.host-driver")).summary,
              HasSubstr("(package NVIDIA-vGPU-rhel-9.4) is the vGPU host driver"));
}

// nvidia-vgpud ends when it has told the driver the types, so the process says nothing.
TEST(VgpuTypes, SayWhetherTheServiceThatMakesThemFailed) {
  const auto summary_with = [](const std::optional<std::string>& systemctl) {
    TestMachine machine;
    machine.tree.directory("sys/module/nvidia_vgpu_vfio");
    machine.pci("vendor", "0x10de\n").pci("device", "0x2236\n").pci("class", "0x030200\n");
    machine.tree.link("sys/bus/pci/devices/0000:00:06.0/driver", "../../drivers/nvidia");
    machine.sources.program_output = [&](const std::vector<std::string>& argv) {
      EXPECT_THAT(argv, ::testing::Contains("nvidia-vgpud.service"));
      return systemctl;
    };
    return machine.look(*find_check("vgpu.types")).summary;
  };
  const auto no_types = summary_with(std::nullopt);
  EXPECT_THAT(no_types, HasSubstr("no vGPU types on GPU 0"));
  EXPECT_THAT(no_types, Not(HasSubstr("nvidia-vgpud")));
  EXPECT_THAT(summary_with("LoadState=loaded\nActiveState=failed\nResult=exit-code\n"
                           "InactiveExitTimestampMonotonic=81234567\n"),
              HasSubstr("no vGPU types on GPU 0 (0000:00:06.0): nvidia-vgpud failed (exit-code)"));
  EXPECT_THAT(summary_with("LoadState=loaded\nActiveState=inactive\nResult=success\n"
                           "InactiveExitTimestampMonotonic=0\n"),
              HasSubstr(": nvidia-vgpud has not run since the machine started"));
  EXPECT_THAT(summary_with("LoadState=not-found\nActiveState=inactive\nResult=success\n"
                           "InactiveExitTimestampMonotonic=0\n"),
              HasSubstr(": nvidia-vgpud is not a service here"));
  EXPECT_EQ(summary_with("LoadState=loaded\nActiveState=inactive\nResult=success\n"
                         "InactiveExitTimestampMonotonic=81234567\n"),
            no_types);
}

}  // namespace
}  // namespace gantry::doctor
