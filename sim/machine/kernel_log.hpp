// SPDX-License-Identifier: Apache-2.0
// The kernel log of a simulated machine: the driver's lines at the start and about an Xid.
#pragma once

#include "sim/machine/machine.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::sim {

inline constexpr std::string_view kKernelLog = "/var/log/dmesg";

// The content of the log after boot.
std::string boot_log(const Machine& machine);

// "PCI:0000:3b:00": the driver leaves the function out
std::string log_name(std::uint32_t domain, std::uint32_t bus, std::uint32_t device);

// "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
std::string xid_line(const std::string& where, std::uint32_t xid, std::uint32_t driver_branch);

}  // namespace gantry::sim
