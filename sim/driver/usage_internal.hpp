// SPDX-License-Identifier: Apache-2.0
// Process numbers across pid namespaces, for usage.cpp.
#pragma once

#include <stdint.h>

namespace gantry::sim {

// Inode of /proc/self/ns/pid; 0 when it cannot be read.
uint64_t own_pid_namespace();

// The pid, in our pid namespace, of the process that has `pid` in the namespace `space`; 0 if it is
// not visible here.
int32_t pid_in_own_namespace(int32_t pid, uint64_t space);

// The last number of the "NSpid:" line of a /proc/PID/status, which is the pid in the process's own
// namespace, and the depth of that namespace. False if there is no such line.
bool innermost_pid(const char* status, int32_t& pid, int& depth);

}  // namespace gantry::sim
