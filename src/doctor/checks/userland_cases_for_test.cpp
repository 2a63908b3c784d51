// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/machine_for_test.hpp"
#include "gpu/loader/ld_cache.hpp"

namespace gantry::doctor {
namespace {

using enum Verdict;

constexpr std::string_view kDirectory = "/usr/local/nvidia/lib64";

void not_in_usr_lib(TestMachine& p) {
  p.tree.remove("usr/lib/libcuda.so.1").remove("usr/lib/libnvidia-ml.so.1");
}

void in_cache(TestMachine& p) {
  not_in_usr_lib(p);
  const auto bytes = loader::serialize_ld_cache(
      {.entries = {{.name = "libcuda.so.1", .path = std::string(kDirectory) + "/libcuda.so.1"}}});
  p.tree.file("etc/ld.so.cache", *bytes);
}

void little_space(TestMachine& p) {
  p.sources.free_bytes = [](const sys::Host&, const std::string&) {
    return std::optional<std::uint64_t>(1 << 20);
  };
}

}  // namespace

std::vector<Case> userland_cases() {
  return {
      {"lib.present", Ok, unchanged},
      {"lib.present", Fail, [](TestMachine& p) { p.inventory.files.clear(); }},
      {"lib.loader", Ok, unchanged},
      {"lib.loader", Ok, in_cache},
      {"lib.loader", Warn, not_in_usr_lib},
      {"lib.loader", Info,
       [](TestMachine& p) {
         not_in_usr_lib(p);
         p.sources.caller.library_path = "/opt:" + std::string(kDirectory);
       }},
      {"lib.stub", Ok, unchanged},
      {"lib.stub", Fail, [](TestMachine& p) { p.tree.file("usr/lib64/libcuda.so.1", ""); }},
      {"lib.stub", Fail,
       [](TestMachine& p) {
         p.inventory.notes = {"/usr/lib64/libcuda.so.580 is damaged: ELF file: ends in its header"};
       }},
      {"lib.stub", Fail, [](TestMachine& p) { p.tree.link("usr/lib64/libcuda.so.1", "gone"); }},
      {"lib.stub", Fail,
       [](TestMachine& p) { p.sources.caller.library_path = "/usr/local/cuda/lib64/stubs"; }},
      {"lib.versions", Ok, unchanged},
      {"lib.versions", Warn,
       [](TestMachine& p) { p.tree.file("usr/lib64/libcuda.so.470.57.02", "x"); }},
      {"lib.compat", Ok, unchanged},
      {"lib.compat", Warn,
       [](TestMachine& p) {
         p.tree.file("usr/local/cuda/compat/libcuda.so.535.54.03", "x");
         p.sources.caller.library_path = "/usr/local/cuda/compat";
       }},
      {"persistence.off", Ok, unchanged},
      {"persistence.off", Warn, [](TestMachine& p) { p.gpu().persistence = false; }},
      {"persistence.off", Ok,
       [](TestMachine& p) { p.process("nvidia-persistenced").gpu().persistence = false; }},
      {"persistence.socket", Skip, unchanged},
      {"persistence.socket", Warn,
       [](TestMachine& p) { p.tree.file("run/nvidia-persistenced/socket"); }},
      {"persistence.socket", Ok,
       [](TestMachine& p) {
         p.process("nvidia-persistenced").tree.file("run/nvidia-persistenced/socket");
       }},
      {"mps.stale", Warn, [](TestMachine& p) { p.tree.file("tmp/nvidia-mps/control"); }},
      {"mps.stale", Ok,
       [](TestMachine& p) {
         p.process("nvidia-cuda-mps-control").tree.file("tmp/nvidia-mps/control");
       }},
      {"selinux.devices", Skip, unchanged},
      {"selinux.devices", Warn, [](TestMachine& p) { p.tree.file("sys/fs/selinux/enforce", "1"); }},
      {"selinux.devices", Ok,
       [](TestMachine& p) {
         p.tree.file("sys/fs/selinux/enforce", "1")
             .file("sys/fs/selinux/booleans/container_use_devices", "1 1");
       }},
      {"limit.memlock", Skip, unchanged},
      {"limit.memlock", Warn,
       [](TestMachine& p) { p.tree.directory("sys/class/infiniband/mlx5_0"); }},
      {"limit.memlock", Ok,
       [](TestMachine& p) {
         p.tree.directory("sys/class/infiniband/mlx5_0")
             .file("proc/self/limits", "Max locked memory  unlimited  unlimited  bytes\n");
       }},
      {"limit.address-space", Ok, unchanged},
      {"limit.address-space", Warn,
       [](TestMachine& p) {
         p.tree.file("proc/self/limits", "Max address space  17179869184  unlimited  bytes\n");
       }},
      {"limit.overcommit", Ok, unchanged},
      {"limit.overcommit", Warn,
       [](TestMachine& p) { p.tree.file("proc/sys/vm/overcommit_memory", "2\n"); }},
      {"limit.shm", Ok, unchanged},
      {"limit.shm", Warn,
       [](TestMachine& p) {
         p.tree.file("proc/mounts", "shm /dev/shm tmpfs rw,size=65536k 0 0\n");
       }},
      {"disk.space", Ok, unchanged},
      {"disk.space", Warn, little_space},
      {"mount.noexec", Ok, unchanged},
      {"mount.noexec", Fail,
       [](TestMachine& p) {
         p.tree.file("proc/mounts",
                     "/dev/vda / ext4 rw 0 0\n/dev/vdb /usr/local ext4 ro,noexec 0 0\n");
       }},
  };
}

}  // namespace gantry::doctor
