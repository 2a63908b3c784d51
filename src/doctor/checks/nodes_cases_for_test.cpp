// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/machine_for_test.hpp"

namespace gantry::doctor {
namespace {

using enum Verdict;

void with_mig_nodes(TestMachine& p) {
  p.gpu().mig.current = p.gpu().mig.pending = model::MigMode::Enabled;
  p.gpu().mig.instances.push_back({.uuid = {"MIG-1"}, .gpu_instance = 1, .compute_instance = 0});
  const std::string base = "proc/driver/nvidia/capabilities/gpu0/mig/gi1/";
  p.tree.file(base + "access", "DeviceFileMinor: 12\nDeviceFileMode: 292\n")
      .file(base + "ci0/access", "DeviceFileMinor: 13\nDeviceFileMode: 292\n");
  p.node("/dev/nvidia-caps/nvidia-cap2", "c 241 2 0444 0 0");
}

// What SUSE sets up, and what seed 004 ran into.
void for_group_video(TestMachine& p) {
  for (const char* path : {"/dev/nvidiactl", "/dev/nvidia0"}) {
    p.node(path, path == std::string("/dev/nvidia0") ? "c 195 0 0660 0 33" : "c 195 255 0660 0 33");
  }
  p.node("/dev/nvidia-uvm", "c 238 0 0660 0 33").node("/dev/nvidia-uvm-tools", "c 238 1 0660 0 33");
  p.param("DeviceFileGID", "33").param("DeviceFileMode", "432");
}

void systemd(TestMachine& p) {
  p.tree.directory("run/systemd/system");
}

}  // namespace

std::vector<Case> node_cases() {
  return {
      {"node.missing", Ok, unchanged},
      {"node.missing", Fail, [](TestMachine& p) { p.no_node("/dev/nvidia0"); }},
      {"node.missing", Fail, [](TestMachine& p) { p.no_node("/dev/nvidiactl"); }},
      {"node.uvm", Ok, unchanged},
      {"node.uvm", Fail, [](TestMachine& p) { p.no_node("/dev/nvidia-uvm"); }},
      {"node.modeset", Skip, unchanged},
      {"node.modeset", Fail, [](TestMachine& p) { p.tree.directory("sys/module/nvidia_modeset"); }},
      {"node.modeset", Ok,
       [](TestMachine& p) {
         p.node("/dev/nvidia-modeset", "c 195 254 0666 0 0")
             .tree.directory("sys/module/nvidia_modeset");
       }},
      {"node.capabilities", Skip, unchanged},
      {"node.capabilities", Fail, with_mig_nodes},
      {"node.capabilities", Ok,
       [](TestMachine& p) {
         with_mig_nodes(p);
         p.node("/dev/nvidia-caps/nvidia-cap12", "c 241 12 0444 0 0")
             .node("/dev/nvidia-caps/nvidia-cap13", "c 241 13 0444 0 0");
       }},
      {"node.nvswitch", Ok, [](TestMachine& p) { p.nvswitch(); }},
      {"node.nvswitch", Fail,
       [](TestMachine& p) { p.nvswitch().no_node("/dev/nvidia-nvswitch0"); }},
      {"node.numbers", Ok, unchanged},
      {"node.numbers", Fail, [](TestMachine& p) { p.node("/dev/nvidia-uvm", "c 243 0 0666 0 0"); }},
      {"node.numbers", Fail, [](TestMachine& p) { p.node("/dev/nvidia0", "b 195 0 0666 0 0"); }},
      {"node.stale", Ok, unchanged},
      {"node.stale", Info, [](TestMachine& p) { p.node("/dev/nvidia3", "c 195 3 0666 0 0"); }},
      {"node.mode", Ok, unchanged},
      {"node.mode", Ok, for_group_video},
      {"node.mode", Fail, [](TestMachine& p) { p.node("/dev/nvidia0", "c 195 0 1232 0 0"); }},
      {"node.mode", Warn, [](TestMachine& p) { p.node("/dev/nvidia0", "c 195 0 0660 0 0"); }},
      {"node.mode-option", Ok, unchanged},
      {"node.mode-option", Ok, for_group_video},
      {"node.mode-option", Fail, [](TestMachine& p) { p.param("DeviceFileMode", "666"); }},
      {"node.group", Ok, unchanged},
      {"node.group", Fail, for_group_video},
      {"node.group", Fail,
       [](TestMachine& p) {
         for_group_video(p);
         p.tree.file("usr/bin/nvidia-container-cli");
       }},
      {"node.group", Info,
       [](TestMachine& p) {
         for_group_video(p);
         p.tree.file("etc/nvidia-container-runtime/config.toml",
                     "[nvidia-container-cli]\nuser = \"root:video\"\n");
       }},
      {"node.caller", Ok, unchanged},
      {"node.caller", Warn, for_group_video},
      {"node.caller", Ok,
       [](TestMachine& p) {
         for_group_video(p);
         p.sources.caller.groups = {1000, 33};
       }},
      {"node.caller", Ok,
       [](TestMachine& p) {
         for_group_video(p);
         p.sources.caller.uid = 0;
       }},
      {"node.char-links", Skip, unchanged},
      {"node.char-links", Warn, systemd},
      {"node.char-links", Ok,
       [](TestMachine& p) {
         systemd(p);
         p.tree.link("dev/char/195:0", "../nvidia0")
             .link("dev/char/195:255", "../nvidiactl")
             .link("dev/char/238:0", "../nvidia-uvm")
             .link("dev/char/238:1", "../nvidia-uvm-tools");
       }},
  };
}

}  // namespace gantry::doctor
