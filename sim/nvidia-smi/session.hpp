// SPDX-License-Identifier: Apache-2.0
//
// One run of nvidia-smi: NVML opened, the GPUs it lists, and which of them were asked for.
#pragma once

#include "sim/nvidia-smi/nvml.hpp"
#include "sim/nvidia-smi/text.hpp"

namespace smi {

inline constexpr unsigned kMaxListedGpus = 64;

/// What the vendor's program exits with; NVML's own codes are used for everything else.
inline constexpr int kDone = 0;
inline constexpr int kUsage = 2;
inline constexpr int kUnknownOption = 255;

struct Session;

struct Gpu {
  const Session* session = nullptr;
  nvmlDevice_t handle = nullptr;
  unsigned index = 0;
  char bus_id[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE] = {};
};

struct Session {
  Nvml nvml;
  Text driver_version;        // of the kernel module: "580.159.04"
  Text library_version;       // of NVML, and so of this program
  unsigned driver_major = 0;  // 580
  unsigned driver_minor = 0;  // 159
  unsigned cuda_version = 0;  // 13000
  unsigned attached = 0;      // GPUs NVML counts
  unsigned count = 0;         // GPUs asked for
  int lost = 0;               // exit status when a GPU could not be opened
  Gpu gpus[kMaxListedGpus];

  bool at_least(unsigned major) const { return driver_major >= major; }
};

/// Opens NVML and reads the versions. On failure prints what the vendor's program prints and
/// returns its exit status.
int open(Session& session);

/// Takes the GPUs named by `ids` (index, UUID, serial or PCI address, separated by commas; null =
/// all).
int select(Session& session, const char* ids);

void close(Session& session);

/// NVML's words for an error.
const char* words(const Session& session, nvmlReturn_t error);

}  // namespace smi
