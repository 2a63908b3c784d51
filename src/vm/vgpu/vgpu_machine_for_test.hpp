// SPDX-License-Identifier: Apache-2.0
// A simulated vGPU host in a temporary directory, whose sysfs answers to writes, and in which every
// act can be made the last one.
#pragma once

#include "support/tree.hpp"
#include "vm/vgpu/change.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gantry::vgpu {

// Thrown by an action in place of kill -9: nothing runs after it except what the kernel does.
struct KilledForTest {};

class VgpuMachine {
 public:
  explicit VgpuMachine(std::string_view name);  // "vgpu-a10"

  sys::Host& host() { return *host_; }
  std::string path(std::string_view inside) const { return root_ + std::string(inside); }
  // The file that says which vGPU a virtual function has.
  std::string vendor_path(const std::string& function);
  std::vector<VgpuGpu> gpus() { return read_host(host(), read_known_types(host())); }

  // Actions that count themselves in acts(). They throw KilledForTest at act number `kill_at` (from
  // 1): before it if `before`, else right after its effect.
  Actions actions(int kill_at = 0, bool before = true);
  int acts() const { return acts_; }

  void reboot();  // the kernel forgets; files stay
  // A process that has the vGPU's VFIO node open, and one that closes it again.
  void hold(const Vgpu& vgpu, unsigned pid);
  void release(unsigned pid);

  // Called before each write to sysfs; an error replaces the write.
  std::function<Status(std::string_view path, std::string_view text)> fault;
  std::vector<std::string> writes;  // "path text"

 private:
  Status act(const std::function<Status()>& work);

  test::Tree tree_;
  std::string root_;
  std::unique_ptr<sys::Host> host_;
  int acts_ = 0;
  int kill_at_ = 0;
  bool before_ = true;
  int next_uuid_ = 0;
};

// "A10-4Q A10-4Q | A10-8Q": the types of each GPU in order, GPUs separated by bars.
std::string types_of(const std::vector<VgpuGpu>& gpus);

model::PciAddress first_gpu();   // 0000:3b:00.0
model::PciAddress second_gpu();  // 0000:af:00.0

}  // namespace gantry::vgpu
