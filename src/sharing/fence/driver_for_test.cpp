// SPDX-License-Identifier: Apache-2.0
#include "sharing/fence/driver_for_test.hpp"

#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"

#include <limits.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace gantry::fence {

constinit Host host{};
void reattach() {}
void check_connection() {}
void use_own_gates() {}
void use_daemon_gates() {}
void set_own_gate(uint32_t, uint32_t) {}

namespace detail {
constinit RealState real_state{};
void resolve_real() {}
}  // namespace detail

namespace test {
namespace {

struct DriverState {
  std::mutex mutex;
  std::map<CUstream, std::uint64_t> ready{{CU_STREAM_LEGACY, 0}, {CU_STREAM_PER_THREAD, 0}};
  std::map<CUevent, std::uint64_t> reached;
  std::uintptr_t next = 4096;
  std::vector<FenceReport> reports;
  std::uint64_t misuses = 0;
};
DriverState& driver_state() {
  static DriverState& made = *new DriverState;  // the completion thread outlives main
  return made;
}
FenceLimits limits_page{};
struct {
  FenceUsage header;
  FenceUsageRow rows[FENCE_MAX_PROCESSES];
} usage_page{};

CUcontext the_context() {
  return reinterpret_cast<CUcontext>(&limits_page);
}

template <class Handle>
Handle next_handle() {
  return reinterpret_cast<Handle>(driver_state().next += 64);
}

CUresult get_current(CUcontext* context) {
  *context = the_context();
  return CUDA_SUCCESS;
}
CUresult push_current(CUcontext) {
  return CUDA_SUCCESS;
}
CUresult pop_current(CUcontext*) {
  return CUDA_SUCCESS;
}
CUresult get_device(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult stream_context(CUstream, CUcontext* context) {
  return get_current(context);
}
CUresult is_capturing(CUstream, CUstreamCaptureStatus* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult exchange_mode(CUstreamCaptureMode*) {
  return CUDA_SUCCESS;
}
CUresult device_count(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult device_get(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult device_uuid(CUuuid* uuid, CUdevice) {
  *uuid = {};
  return CUDA_SUCCESS;
}

CUresult stream_create(CUstream* stream, unsigned int) {
  const std::lock_guard guard(driver_state().mutex);
  *stream = next_handle<CUstream>();
  driver_state().ready[*stream] = 0;
  return CUDA_SUCCESS;
}
CUresult stream_destroy(CUstream stream) {
  const std::lock_guard guard(driver_state().mutex);
  driver_state().misuses += driver_state().ready.erase(stream) == 1 ? 0 : 1;
  return CUDA_SUCCESS;
}
CUresult stream_synchronize(CUstream stream) {
  std::uint64_t until = 0;
  {
    const std::lock_guard guard(driver_state().mutex);
    until = driver_state().ready[stream];
  }
  while (monotonic_ns() < until) sleep_for_ns(20'000);
  return CUDA_SUCCESS;
}

CUresult event_create(CUevent* event, unsigned int) {
  const std::lock_guard guard(driver_state().mutex);
  *event = next_handle<CUevent>();
  driver_state().reached[*event] = 0;
  return CUDA_SUCCESS;
}
CUresult event_record(CUevent event, CUstream stream) {
  const std::lock_guard guard(driver_state().mutex);
  const auto found = driver_state().ready.find(stream);
  const auto known = driver_state().reached.find(event);
  if (found == driver_state().ready.end() || known == driver_state().reached.end()) {
    ++driver_state().misuses;
    return CUDA_ERROR_INVALID_HANDLE;
  }
  known->second = found->second;
  return CUDA_SUCCESS;
}
CUresult event_query(CUevent event) {
  const std::lock_guard guard(driver_state().mutex);
  const auto known = driver_state().reached.find(event);
  if (known == driver_state().reached.end()) {
    ++driver_state().misuses;
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return monotonic_ns() < known->second ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
CUresult event_destroy(CUevent event) {
  const std::lock_guard guard(driver_state().mutex);
  driver_state().misuses += driver_state().reached.erase(event) == 1 ? 0 : 1;
  return CUDA_SUCCESS;
}

}  // namespace

void start_small_driver() {
  RealDriver& real = detail::real_state.entry;
  real.cuCtxGetCurrent = get_current;
  real.cuCtxPushCurrent_v2 = push_current;
  real.cuCtxPopCurrent_v2 = pop_current;
  real.cuCtxGetDevice = get_device;
  real.cuStreamGetCtx = stream_context;
  real.cuStreamIsCapturing = is_capturing;
  real.cuThreadExchangeStreamCaptureMode = exchange_mode;
  real.cuDeviceGetCount = device_count;
  real.cuDeviceGet = device_get;
  real.cuDeviceGetUuid_v2 = device_uuid;
  real.cuStreamCreate = stream_create;
  real.cuStreamDestroy_v2 = stream_destroy;
  real.cuStreamSynchronize = stream_synchronize;
  real.cuEventCreate = event_create;
  real.cuEventRecord = event_record;
  real.cuEventQuery = event_query;
  real.cuEventDestroy_v2 = event_destroy;
  __atomic_store_n(&detail::real_state.ready, 2, __ATOMIC_RELEASE);
  limits_page.flags = FENCE_TIME_LIMITED;
  limits_page.gpu_count = 1;
  limits_page.gpu[0].queue_ns = 2'000'000;
  host.limits = host.page = &limits_page;
  host.usage = &usage_page.header;
  host.gpu_count = 1;
  __atomic_store_n(&host.attached, 1, __ATOMIC_RELEASE);
  limits_page.heartbeat_ns = UINT64_MAX;  // never too old, even on a busy machine
}

FenceLimits& page() {
  return limits_page;
}

void set_gate(FenceGate state, std::uint32_t turn) {
  std::uint32_t* gate = &limits_page.gpu[0].gate;
  __atomic_store_n(gate, (turn << FENCE_TURN_SHIFT) | static_cast<std::uint32_t>(state),
                   __ATOMIC_SEQ_CST);
  futex_wake(gate, kAcrossProcesses, INT_MAX);
}

CUresult enqueue(CUstream stream, std::uint64_t nanoseconds) {
  const std::lock_guard guard(driver_state().mutex);
  const auto found = driver_state().ready.find(stream);
  if (found == driver_state().ready.end()) return CUDA_ERROR_INVALID_HANDLE;
  found->second = std::max(found->second, monotonic_ns()) + nanoseconds;
  return CUDA_SUCCESS;
}

bool all_ended() {
  const std::lock_guard guard(driver_state().mutex);
  const std::uint64_t now = monotonic_ns();
  return std::all_of(driver_state().ready.begin(), driver_state().ready.end(),
                     [&](const auto& stream) { return stream.second <= now; });
}

std::vector<FenceReport> reports() {
  const std::lock_guard guard(driver_state().mutex);
  return driver_state().reports;
}

std::uint64_t misuses() {
  const std::lock_guard guard(driver_state().mutex);
  return driver_state().misuses;
}

}  // namespace test

void report(FenceEvent event, uint32_t gpu, uint32_t turn, uint64_t value) {
  const std::lock_guard guard(test::driver_state().mutex);
  test::driver_state().reports.push_back({static_cast<uint32_t>(event), gpu, turn, 0, value});
}

}  // namespace gantry::fence
