// SPDX-License-Identifier: Apache-2.0
//
// MIG devices of a GPU: what -L, the summary table and -q show of them.
#pragma once

#include "sim/nvidia-smi/session.hpp"

namespace smi {

inline constexpr unsigned kMaxMigDevices = 16;

struct MigDevice {
  nvmlDevice_t handle = nullptr;
  unsigned index = 0;
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
  Text profile;  // "3g.20gb"
  Text uuid;
  nvmlDeviceAttributes_t attributes = {};
  nvmlMemory_t memory = {};
  unsigned long long reserved = 0;
  nvmlBAR1Memory_t bar1 = {};
};

struct MigDevices {
  unsigned count = 0;
  MigDevice rows[kMaxMigDevices];
};

void read_mig_devices(const Gpu& gpu, MigDevices& out);

}  // namespace smi
