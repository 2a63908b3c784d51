// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/patient_for_test.hpp"

namespace gantry::doctor {
namespace {

using enum Verdict;

void with_mig(Patient& p) {
  p.gpu().mig.current = p.gpu().mig.pending = model::MigMode::Enabled;
  p.gpu().mig.instances.push_back({.uuid = {"MIG-1"}, .gpu_instance = 1, .compute_instance = 0});
  const std::string base = "proc/driver/nvidia/capabilities/gpu0/mig/gi1/";
  p.tree.file(base + "access", "DeviceFileMinor: 12\nDeviceFileMode: 292\n")
      .file(base + "ci0/access", "DeviceFileMinor: 13\nDeviceFileMode: 292\n");
  p.node("/dev/nvidia-caps/nvidia-cap2", "c 241 2 0444 0 0");
}

// What SUSE sets up, and what seed 004 ran into.
void for_group_video(Patient& p) {
  for (const char* path : {"/dev/nvidiactl", "/dev/nvidia0"}) {
    p.node(path, path == std::string("/dev/nvidia0") ? "c 195 0 0660 0 33" : "c 195 255 0660 0 33");
  }
  p.node("/dev/nvidia-uvm", "c 238 0 0660 0 33").node("/dev/nvidia-uvm-tools", "c 238 1 0660 0 33");
  p.param("DeviceFileGID", "33").param("DeviceFileMode", "432");
}

void systemd(Patient& p) {
  p.tree.directory("run/systemd/system");
}

}  // namespace

std::vector<Case> node_cases() {
  return {
      {"node.missing", Ok, as_it_is},
      {"node.missing", Fail, [](Patient& p) { p.no_node("/dev/nvidia0"); }},
      {"node.missing", Fail, [](Patient& p) { p.no_node("/dev/nvidiactl"); }},
      {"node.uvm", Ok, as_it_is},
      {"node.uvm", Fail, [](Patient& p) { p.no_node("/dev/nvidia-uvm"); }},
      {"node.modeset", Skip, as_it_is},
      {"node.modeset", Fail, [](Patient& p) { p.tree.directory("sys/module/nvidia_modeset"); }},
      {"node.modeset", Ok,
       [](Patient& p) {
         p.node("/dev/nvidia-modeset", "c 195 254 0666 0 0")
             .tree.directory("sys/module/nvidia_modeset");
       }},
      {"node.capabilities", Skip, as_it_is},
      {"node.capabilities", Fail, with_mig},
      {"node.capabilities", Ok,
       [](Patient& p) {
         with_mig(p);
         p.node("/dev/nvidia-caps/nvidia-cap12", "c 241 12 0444 0 0")
             .node("/dev/nvidia-caps/nvidia-cap13", "c 241 13 0444 0 0");
       }},
      {"node.nvswitch", Ok, [](Patient& p) { p.nvswitch(); }},
      {"node.nvswitch", Fail, [](Patient& p) { p.nvswitch().no_node("/dev/nvidia-nvswitch0"); }},
      {"node.numbers", Ok, as_it_is},
      {"node.numbers", Fail, [](Patient& p) { p.node("/dev/nvidia-uvm", "c 243 0 0666 0 0"); }},
      {"node.numbers", Fail, [](Patient& p) { p.node("/dev/nvidia0", "b 195 0 0666 0 0"); }},
      {"node.stale", Ok, as_it_is},
      {"node.stale", Info, [](Patient& p) { p.node("/dev/nvidia3", "c 195 3 0666 0 0"); }},
      {"node.mode", Ok, as_it_is},
      {"node.mode", Ok, for_group_video},
      {"node.mode", Fail, [](Patient& p) { p.node("/dev/nvidia0", "c 195 0 1232 0 0"); }},
      {"node.mode", Warn, [](Patient& p) { p.node("/dev/nvidia0", "c 195 0 0660 0 0"); }},
      {"node.mode-option", Ok, as_it_is},
      {"node.mode-option", Ok, for_group_video},
      {"node.mode-option", Fail, [](Patient& p) { p.param("DeviceFileMode", "666"); }},
      {"node.group", Ok, as_it_is},
      {"node.group", Fail, for_group_video},
      {"node.group", Fail,
       [](Patient& p) {
         for_group_video(p);
         p.tree.file("usr/bin/nvidia-container-cli");
       }},
      {"node.group", Info,
       [](Patient& p) {
         for_group_video(p);
         p.tree.file("etc/nvidia-container-runtime/config.toml",
                     "[nvidia-container-cli]\nuser = \"root:video\"\n");
       }},
      {"node.caller", Ok, as_it_is},
      {"node.caller", Warn, for_group_video},
      {"node.caller", Ok,
       [](Patient& p) {
         for_group_video(p);
         p.sources.caller.groups = {1000, 33};
       }},
      {"node.caller", Ok,
       [](Patient& p) {
         for_group_video(p);
         p.sources.caller.uid = 0;
       }},
      {"node.char-links", Skip, as_it_is},
      {"node.char-links", Warn, systemd},
      {"node.char-links", Ok,
       [](Patient& p) {
         systemd(p);
         p.tree.link("dev/char/195:0", "../nvidia0")
             .link("dev/char/195:255", "../nvidiactl")
             .link("dev/char/238:0", "../nvidia-uvm")
             .link("dev/char/238:1", "../nvidia-uvm-tools");
       }},
  };
}

}  // namespace gantry::doctor
