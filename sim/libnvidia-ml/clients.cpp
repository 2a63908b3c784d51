// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/file_lock_internal.hpp"
#include "sim/libnvidia-ml/clients_internal.hpp"

namespace gantry::sim::nvml {
namespace {

constexpr uint64_t kFirstByte = 1ULL << 62;  // far behind the end of every file

struct Hold {
  int fd;  // -1: none
};
constinit Hold hold{-1};

}  // namespace

void hold_gpus() {
  hold.fd = open(gantry_sim_own_file(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  for (uint32_t gpu = 0; hold.fd >= 0 && gpu < machine().gpu_count; ++gpu) {
    if (session().access[gpu] == NVML_SUCCESS)
      lock_call(hold.fd, kOfdSetLock, F_RDLCK, kFirstByte + gpu, 1);
  }
}

void release_gpus() {
  if (hold.fd >= 0) close(hold.fd);  // and with it the locks
  hold.fd = -1;
}

bool has_other_session(uint32_t gpu) {
  struct flock found = {};
  return hold.fd >= 0 &&
         lock_call(hold.fd, kOfdGetLock, F_WRLCK, kFirstByte + gpu, 1, &found) == 0 &&
         found.l_type != F_UNLCK;
}

}  // namespace gantry::sim::nvml
