// SPDX-License-Identifier: Apache-2.0
// The kernel's log of a simulated machine: what the driver says while it starts, and about an Xid.
#pragma once

#include "sim/machine/machine.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::sim {

inline constexpr std::string_view kKernelLog = "/var/log/dmesg";

// What is in the log when the machine has booted.
std::string boot_log(const Machine& machine);

// "PCI:0000:3b:00": the driver leaves the function out
std::string log_name(std::uint32_t domain, std::uint32_t bus, std::uint32_t device);

// "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
std::string xid_line(const std::string& where, std::uint32_t xid, std::uint32_t driver_branch);

}  // namespace gantry::sim
