// SPDX-License-Identifier: Apache-2.0
// A healthy H200 guest as a small tree and an inventory, to be made ill by a test.
#pragma once

#include "doctor/engine/check.hpp"
#include "support/tree.hpp"

#include <map>
#include <string>
#include <string_view>

namespace gantry::doctor {

class TestMachine {
 public:
  TestMachine();

  test::Tree tree;
  model::Inventory inventory;
  FactSources sources;

  model::Gpu& gpu() { return inventory.gpus.front(); }
  model::PciFunction& function() { return inventory.functions.front(); }

  TestMachine& pci(std::string_view file, std::string_view content);    // of the GPU in sysfs
  TestMachine& param(std::string_view name, std::string_view value);    // of the driver
  TestMachine& node(const std::string& path, const std::string& rest);  // "c 195 0 0666 0 0"
  TestMachine& no_node(const std::string& path);
  TestMachine& process(std::string_view name, char state = 'S');
  TestMachine& metal();       // not a guest any more
  TestMachine& unloaded();    // the nvidia module is gone
  TestMachine& second_gpu();  // beside the first, at 0000:00:07.0, minor 1
  TestMachine& nvswitch();    // one NVSwitch at 0000:00:08.0
  TestMachine& kubelet(std::string_view config = "cgroupDriver: systemd\n");
  TestMachine& log(std::string_view line);

  sys::Host host();  // writes what is still pending

  Finding look(const Check& check);

 private:
  std::map<std::string, std::string> nodes_;
  std::map<std::string, std::string> params_;
  int pid_ = 100;
};

using Change = void (*)(TestMachine&);

struct Case {
  std::string_view id;
  Verdict expected;
  Change change;
};

inline void unchanged(TestMachine&) {}

std::vector<Case> hardware_cases();
std::vector<Case> vgpu_cases();
std::vector<Case> module_cases();
std::vector<Case> gpu_cases();
std::vector<Case> node_cases();
std::vector<Case> userland_cases();
std::vector<Case> runtime_cases();
std::vector<Case> cluster_cases();
std::vector<Case> share_cases();
std::vector<Case> ownership_cases();

}  // namespace gantry::doctor
