// SPDX-License-Identifier: Apache-2.0
// Injections into the files of the tree; inject.cpp changes the libraries.
#pragma once

#include "sim/machine/state_file.hpp"

namespace gantry::sim {

enum class ConfigSpace : std::uint8_t { Readable, AllOnes };
Status set_config_space(const StateFile& file, std::uint32_t gpu, ConfigSpace how);

// Adds the kernel's line about an XID to /var/log/dmesg, and removes all lines of a GPU again.
Status log_xid(const StateFile& file, std::uint32_t gpu, std::uint32_t xid);
Status remove_xid_lines(const StateFile& file, std::uint32_t gpu);

Status set_mig_capabilities(StateFile& file, std::uint32_t gpu);

// Hides or shows a GPU in the kernel's files and in /dev. NVML and CUDA sessions that have already
// begun keep it.
Status hide_gpu(const StateFile& file, std::uint32_t gpu);
Status restore_gpu(const StateFile& file, std::uint32_t gpu);

// Another value in /proc/sys/kernel/random/boot_id, as after a restart of the machine.
Status renew_boot_id(const sys::Host& host);

Status hide_driver(const sys::Host& host);
Status restore_driver(const sys::Host& host);

}  // namespace gantry::sim
