// SPDX-License-Identifier: Apache-2.0
// Processes on a GPU: only the share's own, with the pids of the caller's namespace.
//
// Compute processes come from the daemon's rows, not from the driver: in another pid namespace the
// driver may give the host's pids, or none at all. Only the driver knows graphics processes and MPS
// clients; its list is filtered.
#include "sharing/fence/nvml/real_internal.hpp"
#include "sharing/fence/nvml/share_internal.hpp"
#include "sharing/fence/nvml/whole_list_internal.hpp"

using namespace gantry::fence::nvml;

namespace {

constexpr unsigned int kNoInstance = 0xFFFFFFFF;

void put(const Member& member, nvmlProcessInfo_v1_t& out) {
  out = {member.pid, member.bytes};
}

void put(const Member& member, nvmlProcessInfo_v2_t& out) {
  out = {member.pid, member.bytes, kNoInstance, kNoInstance};
}

void put(const Member& member, nvmlProcessDetail_v1_t& out) {
  out = {member.pid, member.bytes, kNoInstance, kNoInstance, 0};
}

template <typename Info>
void add_members(const Share& share, OutputList<Info>& shown) {
  for (uint32_t slot = 0; slot < share.slots(); ++slot) {
    Member member{};
    Info info{};
    if (!share.member(slot, member)) continue;
    put(member, info);
    shown.add(info);
  }
}

bool is_member(const Share& share, unsigned int pid) {
  for (uint32_t slot = 0; slot < share.slots(); ++slot) {
    Member member{};
    if (share.member(slot, member) && member.pid == pid) return true;
  }
  return false;
}

template <typename Info>
void add_own(const Share& share, const DriverList<Info>& all, OutputList<Info>& shown) {
  for (Info info : all) {
    if (share.own(info.pid, info.pid)) shown.add(info);
  }
}

// For processes that only the driver knows.
void add_rest(const Share& share, const DriverList<nvmlProcessDetail_v1_t>& all,
              OutputList<nvmlProcessDetail_v1_t>& shown) {
  for (auto info : all) {
    if (share.own(info.pid, info.pid) && !is_member(share, info.pid)) shown.add(info);
  }
}

// Checks the arguments with the driver before anything is filtered: asks it for the count, with an
// empty buffer.
bool refused(nvmlReturn_t result) {
  return result != NVML_SUCCESS && result != NVML_ERROR_INSUFFICIENT_SIZE;
}

template <typename Info>
using ListFunction = nvmlReturn_t (*)(nvmlDevice_t, unsigned int*, Info*);

template <typename Info>
nvmlReturn_t checked(ListFunction<Info> real, nvmlDevice_t device, const unsigned int* count,
                     const Info* infos) {
  unsigned int none = 0;
  const nvmlReturn_t result = real(device, count == nullptr ? nullptr : &none, nullptr);
  if (refused(result)) return result;
  if (count == nullptr || (infos == nullptr && *count > 0)) return NVML_ERROR_INVALID_ARGUMENT;
  return NVML_SUCCESS;
}

// `fill` adds the processes to show.
template <typename Info, typename Fill>
nvmlReturn_t list(ListFunction<Info> real, nvmlDevice_t device, unsigned int* count, Info* infos,
                  Fill fill) {
  if (real == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
  const Share share(device);
  if (share.standing() == Membership::NotInShare) return real(device, count, infos);
  if (const nvmlReturn_t bad = checked(real, device, count, infos); bad != NVML_SUCCESS) return bad;
  if (share.standing() == Membership::Unknown) return Share::kUnknown;
  OutputList<Info> shown(infos, *count);
  if (const nvmlReturn_t bad = fill(share, shown); bad != NVML_SUCCESS) return bad;
  return shown.end(count);
}

template <typename Info>
nvmlReturn_t list_compute(ListFunction<Info> real, nvmlDevice_t device, unsigned int* count,
                          Info* infos) {
  return list(real, device, count, infos, [](const Share& share, OutputList<Info>& shown) {
    add_members(share, shown);
    return NVML_SUCCESS;
  });
}

template <typename Info>
nvmlReturn_t list_narrowed(ListFunction<Info> real, nvmlDevice_t device, unsigned int* count,
                           Info* infos) {
  return list(real, device, count, infos, [&](const Share& share, OutputList<Info>& shown) {
    DriverList<Info> all;
    const nvmlReturn_t result =
        all.fill([&](unsigned int* size, Info* items) { return real(device, size, items); });
    if (result == NVML_SUCCESS) add_own(share, all, shown);
    return result;
  });
}

}  // namespace

#define FENCE_LIST(how, function, info)                                                       \
  FENCE_EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int* count, info* infos) { \
    return how<info>(FENCE_REAL(function), device, count, infos);                             \
  }

FENCE_LIST(list_compute, nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
FENCE_LIST(list_compute, nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
FENCE_LIST(list_compute, nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)
FENCE_LIST(list_narrowed, nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
FENCE_LIST(list_narrowed, nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
FENCE_LIST(list_narrowed, nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
FENCE_LIST(list_narrowed, nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
FENCE_LIST(list_narrowed, nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
FENCE_LIST(list_narrowed, nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)
FENCE_LIST(list_narrowed, nvmlDeviceGetEncoderSessions, nvmlEncoderSessionInfo_t)

FENCE_EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                                nvmlProcessDetailList_t* details) {
  const auto real = FENCE_REAL(nvmlDeviceGetRunningProcessDetailList);
  if (real == nullptr) return NVML_ERROR_FUNCTION_NOT_FOUND;
  const Share share(device);
  if (share.standing() == Membership::NotInShare || details == nullptr)
    return real(device, details);
  auto ask = [&](unsigned int* size, nvmlProcessDetail_v1_t* items) {
    nvmlProcessDetailList_t list{details->version, details->mode, *size, items};
    const nvmlReturn_t result = real(device, &list);
    *size = list.numProcArrayEntries;
    return result;
  };
  unsigned int none = 0;
  if (const nvmlReturn_t result = ask(&none, nullptr); refused(result)) return result;
  if (share.standing() == Membership::Unknown) return Share::kUnknown;
  if (details->procArray == nullptr && details->numProcArrayEntries > 0) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  DriverList<nvmlProcessDetail_v1_t> all;
  if (const nvmlReturn_t result = all.fill(ask); result != NVML_SUCCESS) return result;
  OutputList<nvmlProcessDetail_v1_t> shown(details->procArray, details->numProcArrayEntries);
  switch (details->mode) {
    case NVML_PROCESS_MODE_COMPUTE: add_members(share, shown); break;
    case NVML_PROCESS_MODE_ALL:
      add_members(share, shown);
      add_rest(share, all, shown);
      break;
    default: add_own(share, all, shown);
  }
  return shown.end(&details->numProcArrayEntries);
}
