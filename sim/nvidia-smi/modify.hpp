// SPDX-License-Identifier: Apache-2.0
//
// Shared by the commands that change a GPU.
#pragma once

#include "sim/nvidia-smi/session.hpp"

namespace smi {

inline int refuse_value(const char* what, const char* value) {
  printf("Invalid %s: %s\nTerminating early due to previous errors.\n", what, value);
  return kUsage;
}

inline int give_up(nvmlReturn_t error) {
  puts("Terminating early due to previous errors.");
  return error == NVML_ERROR_UNKNOWN ? 255 : error;
}

inline int finish(const Session& session) {
  puts("All done.");
  return session.lost;
}

/// A card that cannot do it does not stop the command: the next GPU may.
inline bool is_warning(nvmlReturn_t error) {
  return error == NVML_ERROR_NOT_SUPPORTED || error == NVML_ERROR_FUNCTION_NOT_FOUND;
}

}  // namespace smi
