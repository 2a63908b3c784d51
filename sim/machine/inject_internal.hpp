// SPDX-License-Identifier: Apache-2.0
// Injections into the tree's files, beside those into the libraries.
#pragma once

#include "sim/machine/state_file.hpp"

namespace gantry::sim {

enum class ConfigSpace : std::uint8_t { Readable, AllOnes };
Status set_config_space(const StateFile& file, std::uint32_t gpu, ConfigSpace how);

// The kernel's line about an XID in /var/log/dmesg, and all of a GPU's lines out of it again.
Status log_xid(const StateFile& file, std::uint32_t gpu, std::uint32_t xid);
Status remove_xid_lines(const StateFile& file, std::uint32_t gpu);

Status set_mig_capabilities(StateFile& file, std::uint32_t gpu);

// What the kernel and /dev show of one GPU. A session of NVML or CUDA that has begun still has it.
Status hide_gpu(const StateFile& file, std::uint32_t gpu);
Status restore_gpu(const StateFile& file, std::uint32_t gpu);

Status hide_driver(const sys::Host& host);
Status restore_driver(const sys::Host& host);

}  // namespace gantry::sim
