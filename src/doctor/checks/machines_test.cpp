// SPDX-License-Identifier: Apache-2.0
// Whole simulated machines, read by the probe as real ones are.
#include "doctor/checks/all_checks.hpp"
#include "doctor/engine/run_checks.hpp"
#include "gpu/health/compute.hpp"
#include "gpu/probe/snapshot.hpp"
#include "sim/machine/machine.hpp"
#include "support/machine.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace gantry::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CheckedMachine {
 public:
  explicit CheckedMachine(const test::Machine& machine) {
    const auto host = machine.host();
    const auto inventory = probe::snapshot(host);
    const FactSources sources{.caller = {.uid = 0, .groups = {0}, .library_path = ""},
                              .kernel_log = std::nullopt,
                              .this_machine = false,
                              .free_bytes = nullptr};
    const Facts facts(host, *inventory, sources);
    for (const auto& outcome : run_checks(facts, all_checks())) {
      findings_[std::string(outcome.check->id)] = outcome.finding;
    }
  }

  Verdict operator[](const std::string& id) { return findings_.at(id).verdict; }

  // "id: summary" of everything that a person would have to look at.
  std::vector<std::string> bad() const {
    std::vector<std::string> found;
    for (const auto& [id, finding] : findings_) {
      if (finding.verdict == Verdict::Warn || finding.verdict == Verdict::Fail) {
        found.push_back(id + ": " + finding.summary);
      }
    }
    return found;
  }

 private:
  std::map<std::string, Finding> findings_;
};

// Real engines mount a simulated tree from where it is: its specification has those paths.
TEST(Machines, ASpecificationWithTheTreesOwnPathsFits) {
  test::Machine machine("h200");
  const auto spec = [&](const std::string& root) {
    return "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: \"0\"\n  containerEdits:\n"
           "    deviceNodes:\n    - path: /dev/nvidia0\n      hostPath: " +
           root + "/dev/nvidia0\n    mounts:\n    - hostPath: " + root +
           "/usr/local/nvidia/bin/nvidia-smi\n      containerPath: /usr/bin/nvidia-smi\n";
  };
  machine.file("/var/run/cdi/nvidia.yaml", spec(machine.root()));
  EXPECT_EQ(CheckedMachine(machine)["cdi.stale"], Verdict::Ok);
  machine.file("/var/run/cdi/nvidia.yaml", spec("/elsewhere"));
  EXPECT_EQ(CheckedMachine(machine)["cdi.stale"], Verdict::Fail);
}

TEST(Machines, AHealthyH200GuestHasNothingWrong) {
  const test::Machine machine("h200");
  CheckedMachine found(machine);
  if (test::Machine::has_libraries()) {
    EXPECT_THAT(found.bad(), ::testing::IsEmpty());
  }
  EXPECT_EQ(found["numa.unknown"], Verdict::Info);
  EXPECT_EQ(found["module.refcnt"], Verdict::Info);
  EXPECT_EQ(found["iommu.off"], Verdict::Skip);
}

// A log without errors says nothing about GPUs that are not there.
TEST(Machines, WithoutAGpuHaveNoDriverThatStartedIt) {
  test::Tree tree;
  tree.file("proc/version", "Linux").file("sys/bus/pci/devices/.keep", "");
  tree.file("var/log/dmesg", "[    0.0] Linux version 6.1\n");
  const auto host = tree.host();
  const auto inventory = probe::snapshot(host);
  FactSources sources{.caller = {}, .kernel_log = "Linux version 6.1\n", .this_machine = false};
  const Facts facts(host, *inventory, sources);
  for (const char* id : {"log.xid", "log.start", "log.unsupported", "log.api-mismatch"}) {
    const auto finding = find_check(id)->judge(facts);
    EXPECT_EQ(to_string(finding.verdict), "skip") << id << ": " << finding.summary;
    EXPECT_THAT(finding.summary, HasSubstr("no GPU on the bus")) << id;
  }
  // A GPU that fell off the bus has left its error.
  sources.kernel_log = "NVRM: Xid (PCI:0000:00:06): 79, GPU has fallen off the bus\n";
  const Facts later(host, *inventory, sources);
  EXPECT_EQ(find_check("log.xid")->judge(later).verdict, Verdict::Fail);
}

TEST(Machines, ContainerdOfDockerIsInstalled) {
  test::Machine machine("h200");
  machine.file("/usr/bin/containerd", "").file("/usr/bin/dockerd", "");
  const auto host = machine.host();
  const auto inventory = probe::snapshot(host, {.nvml = probe::NvmlUse::Skip});
  const FactSources sources;
  const Facts facts(host, *inventory, sources);
  for (const char* id : {"containerd.runtime", "containerd.default-runtime"}) {
    EXPECT_THAT(find_check(id)->judge(facts).summary, HasSubstr("containerd is Docker's own"))
        << id;
  }
}

// The device plugin shall need no default runtime: doctor offers CDI instead.
TEST(Machines, ContainerdNeedsNoOtherDefaultRuntime) {
  test::Machine machine("h200");
  machine.file("/usr/bin/containerd", "").file("/usr/bin/gantry", "");
  machine.file("/etc/containerd/config.toml",
               "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia."
               "options]\nBinaryName = \"/usr/bin/nvidia-container-runtime\"\n");
  const auto host = machine.host();
  const auto inventory = probe::snapshot(host, {.nvml = probe::NvmlUse::Skip});
  const FactSources sources;
  const Facts facts(host, *inventory, sources);
  const auto* check = find_check("containerd.default-runtime");
  EXPECT_EQ(check->judge(facts).verdict, Verdict::Info);
  EXPECT_THAT(std::string(check->remedy), HasSubstr("--enable-cdi"));
  EXPECT_THAT(std::string(check->remedy), Not(HasSubstr("--set-as-default")));
  EXPECT_THAT(std::string(check->cause), HasSubstr("(--set-as-default) is the only way"));
  const auto steps = check->fix(facts);
  ASSERT_FALSE(steps.empty());
  const auto* program = std::get_if<RunProgram>(&steps.front());
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(program->argv.back(), "--enable-cdi");
}

struct FaultyMachine {
  const char* name;
  std::map<std::string, Verdict> expected;
};

class FaultyMachines : public ::testing::TestWithParam<FaultyMachine> {};

TEST_P(FaultyMachines, AreFoundIll) {
  const test::Machine machine(GetParam().name);
  CheckedMachine found(machine);
  for (const auto& [id, verdict] : GetParam().expected) {
    EXPECT_EQ(to_string(found[id]), to_string(verdict)) << GetParam().name << " " << id;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Machines, FaultyMachines,
    ::testing::Values(
        FaultyMachine{"fabric-down", {{"fabric.manager", Verdict::Fail}}},
        FaultyMachine{"fallen-off",
                      {{"pci.alive", Verdict::Fail},
                       {"log.xid", Verdict::Fail},
                       {"gpu.lost", Verdict::Fail}}},
        FaultyMachine{"mismatch", {{"module.mismatch", Verdict::Fail}}},
        FaultyMachine{"no-nodes", {{"node.missing", Verdict::Fail}, {"node.uvm", Verdict::Fail}}},
        FaultyMachine{"no-uvm", {{"module.uvm", Verdict::Fail}}},
        FaultyMachine{"nouveau",
                      {{"pci.nouveau", Verdict::Fail}, {"module.loaded", Verdict::Fail}}},
        FaultyMachine{"numa", {{"numa.unknown", Verdict::Warn}}},
        FaultyMachine{"secure-boot", {{"module.secure-boot", Verdict::Fail}}},
        FaultyMachine{"vfio", {{"pci.passthrough", Verdict::Info}, {"iommu.off", Verdict::Ok}}},
        FaultyMachine{"wrong-group", {{"node.group", Verdict::Fail}}}),
    [](const auto& machine) {
      std::string name = machine.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// The agent marks GPUs unhealthy by the obstacles alone, so doctor must fail for the same machines.
// A vGPU host is the exception: its driver never has CUDA, no pod may get its GPUs, and nothing is
// wrong with it.
TEST(Machines, FailACheckIfAndOnlyIfAGpuCannotCompute) {
  if (!test::Machine::has_libraries()) GTEST_SKIP() << "simulated libraries are not built";
  for (const auto& entry : sim::machine_catalog()) {
    const test::Machine machine(entry.name);
    const auto host = machine.host();
    const auto inventory = probe::snapshot(host);
    if (inventory->gpus.empty()) continue;
    const auto obstacles =
        health::find_compute_obstacles(*inventory, health::read_compute_facts(host, *inventory));
    CheckedMachine found(machine);
    bool failed = false;
    for (const char* id :
         {"module.loaded", "module.mismatch", "node.missing", "nvml.answers", "module.uvm",
          "node.uvm", "fabric.manager", "gpu.lost", "gpu.compute-mode"}) {
      failed = failed || found[id] == Verdict::Fail;
    }
    const bool vgpu_host = host.exists("/sys/module/nvidia_vgpu_vfio");
    if (vgpu_host) {
      EXPECT_FALSE(obstacles.empty()) << entry.name;
    }
    EXPECT_EQ(failed, !obstacles.empty() && !vgpu_host) << entry.name;
  }
}

TEST(Machines, WithoutAFaultHaveNothingThatFails) {
  for (const char* name : {"a100x8", "h200x8", "t4x4", "mixed", "k2000", "k620", "k80", "vgpu-t4",
                           "vgpu-a10", "vgpu-l40s"}) {
    const test::Machine machine(name);
    if (!test::Machine::has_libraries()) GTEST_SKIP() << "simulated libraries are not built";
    for (const auto& bad : CheckedMachine(machine).bad()) {
      EXPECT_THAT(bad, HasSubstr("persistence.off")) << name;
    }
  }
}

}  // namespace
}  // namespace gantry::doctor
