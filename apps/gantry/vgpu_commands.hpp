// SPDX-License-Identifier: Apache-2.0
// Shared by the commands of `gantry vgpu` and by nvidia-vgpu-dm.
#pragma once

#include "gantry/command.hpp"
#include "vm/vgpu/change.hpp"
#include "vm/vgpu/config_file.hpp"
#include "vm/vgpu/vgpu_host.hpp"

#include <optional>
#include <string>
#include <vector>

namespace gantry::cli {

struct VgpuFlags {
  std::string gpu;  // index, address or UUID; "": all, or the only one
  std::string type;
  unsigned count = 1;
  std::string uuid;
  std::vector<std::string> ids;
  bool all = false;
  std::string file;
  std::string set = std::string(vgpu::kDefaultSet);
  bool restore = false;
  bool valid_only = false;  // assert: the file, not the machine
  bool dry_run = false;
  double deadline_seconds = 10;  // of one write to the kernel
  double vfs_seconds = 30;
};

// What can be seen of the machine: its GPUs and a change that was interrupted.
struct VgpuView {
  std::vector<vgpu::VgpuGpu> gpus;
  std::optional<vgpu::Journal> interrupted;
  std::string state_error;  // why the stored state cannot be read
};
VgpuView view_vgpus(const sys::Host& host);

// The GPU that --gpu names. Without --gpu: the only GPU.
Result<const vgpu::VgpuGpu*> chosen_gpu(const std::vector<vgpu::VgpuGpu>& gpus,
                                        const std::string& name);

// Real sysfs, or that of a simulated machine. `host` must outlive the actions.
vgpu::Actions vgpu_actions(const sys::Host& host, const VgpuFlags& flags);

// A command that a person must type on another machine says so.
Error for_machine(const sys::Host& host, Error error);

Result<int> apply_vgpus(const VgpuFlags& flags, Context& context);
Result<int> assert_vgpus(const VgpuFlags& flags, Context& context);

std::string vgpu_table(const VgpuView& view, std::size_t columns);
std::string vgpu_types_table(const std::vector<const vgpu::VgpuGpu*>& gpus, std::size_t columns);
std::string vgpu_json(const std::vector<const vgpu::VgpuGpu*>& gpus, const VgpuView& view);
std::string vgpu_change_json(const vgpu::ChangeReport& report, bool dry_run);

void add_vgpu_changes(CLI::App& vgpu, Context& context, Action& chosen);

}  // namespace gantry::cli
