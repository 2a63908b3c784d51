// SPDX-License-Identifier: Apache-2.0
// The areas of a tree. Each function writes its part; the writer keeps the first failure.
#pragma once

#include "sim/driver/image.h"
#include "sim/machine/machine.hpp"
#include "sim/machine/simulated_files.hpp"
#include "sim/machine/tree_writer.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::sim {

void write_proc(TreeWriter& out, const Machine& machine);
void write_proc_driver(TreeWriter& out, const Machine& machine);
void write_sys(TreeWriter& out, const Machine& machine);
void write_pci(TreeWriter& out, const Machine& machine);
void write_vgpu_hosts(TreeWriter& out, const Machine& machine);
void write_nodes(TreeWriter& out, const Machine& machine);
void write_etc(TreeWriter& out, const Machine& machine);
void write_driver_files(TreeWriter& out, const Machine& machine, const gantry_sim_image& image,
                        const SimulatedFiles& files);

// The capability files and nodes of one GPU's MIG instances.
struct CapabilityOptions {
  std::uint32_t caps_major = 0, uid = 0, gid = 0;
};
void write_mig_capabilities(TreeWriter& out, const gantry_sim_gpu& gpu,
                            const gantry_sim_gpu_state& state, const CapabilityOptions& options);

void remove_mig_capabilities(TreeWriter& out, const gantry_sim_gpu& gpu);

// The text of /proc/driver/nvidia/version and /proc/driver/nvidia/params.
std::string driver_version_text(const Driver& driver);
std::string driver_params_text(const Machine& machine);

bool driver_loaded(const Machine& machine);
std::string config_space(const PciFunction& function);

}  // namespace gantry::sim
