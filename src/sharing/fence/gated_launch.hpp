// SPDX-License-Identifier: Apache-2.0
// Wraps every call that gives work to the GPU. Without a time limit it only reads the flags.
#pragma once

#include "sharing/fence/daemon_link.hpp"
#include "sharing/fence/driver.hpp"
#include "sharing/fence/gate.hpp"

namespace gantry::fence {

template <class Call>
[[gnu::noinline]] CUresult launch_gated(Launch launch, Call call) {
  const LaunchEntry entry = gate_enter(launch);
  if (entry != LaunchEntry::Counted) return entry == LaunchEntry::Refused ? kLaunchRefused : call();
  const CUresult result = call();
  gate_exit(launch);
  return result;
}

template <class Call>
CUresult launched(CUstream stream, LaunchKind kind, const void* what, Call call) {
  if (__builtin_expect(!time_limited(), 1)) return call();
  return launch_gated({.stream = stream, .kind = kind, .what = what}, call);
}

inline CUstream legacy(CUstream stream) {
  return stream == nullptr ? CU_STREAM_LEGACY : stream;
}
inline CUstream per_thread(CUstream stream) {
  return stream == nullptr ? CU_STREAM_PER_THREAD : stream;
}

}  // namespace gantry::fence
