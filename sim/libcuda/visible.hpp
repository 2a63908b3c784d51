// SPDX-License-Identifier: Apache-2.0
// The devices that CUDA shows, and their order. A pure function of the candidates and the
// environment variables.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace gantry::sim::cuda {

// A GPU that could be used, or one compute instance of a GPU in MIG mode.
struct Candidate {
  uint32_t gpu;
  int32_t gi, ci;        // -1: whole GPU
  const char* gpu_uuid;  // "GPU-..."
  const char* mig_uuid;  // "MIG-...", nullptr for a whole GPU
  uint64_t speed;        // cores times clock
};

// Chooses among `candidates` (in PCI order, instances of one GPU together) and returns how many
// indices it wrote to `chosen`, at most `capacity`. `visible` is CUDA_VISIBLE_DEVICES (nullptr: not
// set), `order` CUDA_DEVICE_ORDER. The list ends at the first word that matches no candidate. CUDA
// uses at most one compute instance, and no whole GPU together with it.
size_t choose_visible(const Candidate* candidates, size_t count, const char* visible,
                      const char* order, size_t* chosen, size_t capacity);

}  // namespace gantry::sim::cuda
