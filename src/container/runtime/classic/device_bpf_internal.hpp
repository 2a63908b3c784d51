// SPDX-License-Identifier: Apache-2.0
// The part of bpf(2) that device programs need.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"
#include "container/runtime/classic/device_program.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace gantry::runtime {

struct AttachedPrograms {
  std::vector<std::uint32_t> ids;
  std::uint32_t flags = 0;  // BPF_F_ALLOW_OVERRIDE or BPF_F_ALLOW_MULTI, as they were attached
};

Result<AttachedPrograms> attached_device_programs(int cgroup_fd);
Result<sys::UniqueFd> device_program(std::uint32_t id);
Result<std::vector<bpf_insn>> instructions_of(int program_fd);
Result<sys::UniqueFd> load_device_program(std::span<const bpf_insn> code);
Status attach_device_program(int cgroup_fd, int program_fd, std::uint32_t flags);
// Replaces the program `now` by `next`, with the flags of `now`.
Status replace_device_program(int cgroup_fd, int now, int next, std::uint32_t flags);

}  // namespace gantry::runtime
