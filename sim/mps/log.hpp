// SPDX-License-Identifier: Apache-2.0
// control.log and server.log, in the vendor's form: "[2026-11-18 20:14:30.705 Control   451] text".
#pragma once

namespace mps {

// A file of CUDA_MPS_LOG_DIRECTORY, open for appending; -1 with errno.
int open_log(const char* name);

// One line, written at once, so that processes do not mix theirs. `who` is "Control" or "Server".
void write_log(int fd, const char* who, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

}  // namespace mps
