// SPDX-License-Identifier: Apache-2.0
// Changes made through NVML. They are written like those of `gantry sim inject`, into the image of
// every library of the driver. A user who cannot write these files gets NO_PERMISSION. The files of
// an installed package are not changed: its driver keeps no state.

#include "sim/driver/running_machine.h"
#include "sim/libnvidia-ml/clients_internal.hpp"
#include "sim/libnvidia-ml/state_change_internal.hpp"
#include "sim/libnvidia-ml/usage_internal.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gantry::sim::nvml {
namespace {

class File {
 public:
  explicit File(const char* path) : fd_(open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)) {
    const off_t size = fd_ < 0 ? -1 : lseek(fd_, 0, SEEK_END);
    gantry_sim_footer footer{};
    const auto tail = static_cast<off_t>(sizeof footer);
    if (size < tail || pread(fd_, &footer, sizeof footer, size - tail) != tail ||
        footer.magic != GANTRY_SIM_FOOTER_MAGIC ||
        footer.image_offset > static_cast<uint64_t>(size)) {
      return;
    }
    state_ = static_cast<off_t>(footer.image_offset + offsetof(struct gantry_sim_image, state));
    sound_ = true;
  }
  ~File() {
    if (fd_ >= 0) close(fd_);  // and with it the lock
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool sound() const { return sound_; }
  // Every process that can read the library can hold its lock, so the wait is limited.
  bool lock() const {
    const uint64_t until = now_us() + 5'000'000;
    while (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      if ((errno != EINTR && errno != EWOULDBLOCK) || now_us() >= until) return false;
      sleep_us(5000);
    }
    return true;
  }
  bool write(size_t offset, const void* from, size_t size) const {
    return pwrite(fd_, from, size, state_ + static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(size);
  }

 private:
  int fd_;
  off_t state_ = 0;
  bool sound_ = false;
};

struct Piece {
  size_t offset;  // in the state
  const void* from;
  size_t size;
};

// The sequence is odd while the rest is being written: readers wait for the even number.
template <size_t count>
bool write_pieces(const File& file, uint32_t sequence, const Piece (&pieces)[count]) {
  const uint32_t busy = sequence | 1U;
  const uint32_t done = busy + 1;
  bool good = file.write(offsetof(gantry_sim_state, sequence), &busy, sizeof busy);
  for (const Piece& piece : pieces)
    good = good && (piece.size == 0 || file.write(piece.offset, piece.from, piece.size));
  return file.write(offsetof(gantry_sim_state, sequence), &done, sizeof done) && good;
}

bool write_all(const File& file, uint32_t sequence, uint32_t gpu, const gantry_sim_gpu_state& value,
               const gantry_sim_event* event) {
  const size_t slot = event == nullptr ? 0 : event->sequence % GANTRY_SIM_MAX_EVENTS;
  const Piece pieces[] = {
      {offsetof(gantry_sim_state, gpu) + gpu * sizeof value, &value, sizeof value},
      {offsetof(gantry_sim_state, event) + slot * sizeof *event, event,
       event == nullptr ? 0 : sizeof *event},
      {offsetof(gantry_sim_state, event_sequence), event,
       event == nullptr ? 0 : sizeof event->sequence}};
  return write_pieces(file, sequence, pieces);
}

uint32_t current_sequence() {
  return __atomic_load_n(&state().sequence, __ATOMIC_ACQUIRE);
}

}  // namespace

void clear_instances(gantry_sim_gpu_state& value) {
  for (auto& instance : value.mig) instance = {};
  value.mig_count = 0;
}

nvmlReturn_t change_gpu(uint32_t gpu, Mutation mutate, void* argument) {
  if (gantry_sim_is_packaged() != 0) return NVML_ERROR_NOT_SUPPORTED;
  const File own(gantry_sim_own_file());
  if (!own.sound()) return NVML_ERROR_NO_PERMISSION;
  if (!own.lock()) return NVML_ERROR_IN_USE;
  gantry_sim_gpu_state value = gpu_now(gpu);
  gantry_sim_event event{};
  event.gpu = gpu;
  event.type = 3;  // MIG configuration
  event.gi_id = event.ci_id = -1;
  bool announce = false;
  if (const auto result = mutate(value, announce, argument); result != NVML_SUCCESS) return result;
  read_state(state(), &state().event_sequence, &event.sequence, sizeof event.sequence);
  ++event.sequence;
  const uint32_t sequence = current_sequence();
  const auto* news = announce ? &event : nullptr;
  if (!write_all(own, sequence, gpu, value, news)) return NVML_ERROR_UNKNOWN;
  char path[PATH_MAX];
  if (find_libcuda(path, sizeof path)) {
    if (const File cuda(path); cuda.sound()) write_all(cuda, sequence, gpu, value, news);
  }
  syscall(SYS_futex, &state().sequence, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return NVML_SUCCESS;
}

bool count_mig_call(uint32_t function, uint64_t& of_function, uint64_t& of_all) {
  if (gantry_sim_is_packaged() != 0) return false;
  const File own(gantry_sim_own_file());
  if (!own.sound() || !own.lock()) return false;
  uint64_t calls[GANTRY_SIM_MIG_FUNCTIONS] = {};
  read_state(state(), state().mig_calls, calls, sizeof calls);
  ++calls[function];
  of_function = calls[function];
  of_all = 0;
  for (const uint64_t count : calls) of_all += count;
  const Piece pieces[] = {{offsetof(gantry_sim_state, mig_calls), calls, sizeof calls}};
  return write_pieces(own, current_sequence(), pieces);
}

void note_mig_call(gantry_sim_mig_call call) {
  const File own(gantry_sim_own_file());
  if (!own.sound() || !own.lock()) return;
  uint64_t successes[GANTRY_SIM_MIG_FUNCTIONS] = {};
  read_state(state(), state().mig_successes, successes, sizeof successes);
  if (call.result == NVML_SUCCESS) ++successes[call.function];
  read_state(state(), &state().mig_call_sequence, &call.sequence, sizeof call.sequence);
  ++call.sequence;
  const size_t slot = call.sequence % GANTRY_SIM_MIG_CALLS;
  const Piece pieces[] = {
      {offsetof(gantry_sim_state, mig_successes), successes, sizeof successes},
      {offsetof(gantry_sim_state, mig_call) + slot * sizeof call, &call, sizeof call},
      {offsetof(gantry_sim_state, mig_call_sequence), &call.sequence, sizeof call.sequence}};
  write_pieces(own, current_sequence(), pieces);
}

// A reset also activates the pending mode of MIG, and no instance survives it.
nvmlReturn_t reset_gpu(const Target& target) {
  if (gpu_now(target.gpu).lost != 0) return NVML_ERROR_GPU_IS_LOST;
  if (geteuid() != 0) return NVML_ERROR_NO_PERMISSION;
  if (const MemoryUses uses(target); uses.size() != 0) return NVML_ERROR_IN_USE;
  if (has_other_session(target.gpu)) return NVML_ERROR_IN_USE;
  const auto reset = [](gantry_sim_gpu_state& value, bool& announce, void*) {
    value.reset_required = value.recovery_action = value.remap_pending = 0;
    value.ecc_corrected_volatile = value.ecc_uncorrected_volatile = 0;
    announce = value.mig_current != value.mig_pending || value.mig_count > 0;
    value.mig_current = value.mig_pending;
    clear_instances(value);
    return NVML_SUCCESS;
  };
  return change_gpu(target.gpu, reset, nullptr);
}

nvmlReturn_t clear_ecc(uint32_t gpu, nvmlEccCounterType_t counter) {
  const auto clear = [](gantry_sim_gpu_state& value, bool&, void* which) {
    if (*static_cast<nvmlEccCounterType_t*>(which) == NVML_VOLATILE_ECC) {
      value.ecc_corrected_volatile = value.ecc_uncorrected_volatile = 0;
    } else {
      value.ecc_corrected_aggregate = value.ecc_uncorrected_aggregate = 0;
    }
    return NVML_SUCCESS;
  };
  return change_gpu(gpu, clear, &counter);
}

}  // namespace gantry::sim::nvml
