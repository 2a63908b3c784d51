// SPDX-License-Identifier: Apache-2.0
// The keys of the JSON form, once, for writer and reader: describe(archive, value) names each
// member. A new member of the model is one line here.
#pragma once

#include "gpu/model/inventory.hpp"

#include <concepts>
#include <type_traits>

namespace gantry::model {

template <class T, class M>
concept MaybeConst = std::same_as<std::remove_const_t<T>, M>;  // M or const M

template <class T>
struct Hex {  // "0x10de"
  T& value;
  int digits;
};
template <class T>
struct Octal {  // "0666"
  T& value;
};
template <class T>
struct Character {  // "C"
  T& value;
};
// clang 14, which builds the fuzz targets, does not deduce these for aggregates.
template <class T>
Hex(T&, int) -> Hex<T>;
template <class T>
Octal(T&) -> Octal<T>;
template <class T>
Character(T&) -> Character<T>;

template <class A, MaybeConst<DeviceNode> T>
void visit_fields(A& a, T& v) {
  a("path", v.path);
  a("major", v.major);
  a("minor", v.minor);
  a("mode", Octal{v.mode});
  a("uid", v.uid);
  a("gid", v.gid);
  a("why", v.why);
}

template <class A, MaybeConst<MigEngines> T>
void visit_fields(A& a, T& v) {
  a("copy", v.copy);
  a("decoder", v.decoder);
  a("encoder", v.encoder);
  a("jpeg", v.jpeg);
  a("optical_flow", v.optical_flow);
}

template <class A, MaybeConst<MigInstance> T>
void visit_fields(A& a, T& v) {
  a("uuid", v.uuid);
  a("index", v.index);
  a("gpu_instance", v.gpu_instance);
  a("compute_instance", v.compute_instance);
  a("profile", v.profile);
  a("memory_bytes", v.memory_bytes);
  a("multiprocessors", v.multiprocessors);
  a("placement_start", v.placement_start);
  a("placement_size", v.placement_size);
  a("gpu_slices", v.gpu_slices);
  a("compute_slices", v.compute_slices);
  a("engines", v.engines);
  a("gpu_instance_node", v.gpu_instance_node);
  a("compute_instance_node", v.compute_instance_node);
}

template <class A, MaybeConst<Mig> T>
void visit_fields(A& a, T& v) {
  a("current", v.current);
  a("pending", v.pending);
  a("instances", v.instances);
}

template <class A, MaybeConst<Health> T>
void visit_fields(A& a, T& v) {
  a("state", v.state);
  a("reasons", v.reasons);
}

template <class A, MaybeConst<Telemetry> T>
void visit_fields(A& a, T& v) {
  a("memory_used_bytes", v.memory_used_bytes);
  a("memory_free_bytes", v.memory_free_bytes);
  a("temperature_celsius", v.temperature_celsius);
  a("utilization_percent", v.utilization_percent);
  a("power_milliwatts", v.power_milliwatts);
  a("power_limit_milliwatts", v.power_limit_milliwatts);
  a("ecc_uncorrected_volatile", v.ecc_uncorrected_volatile);
  a("ecc_corrected_volatile", v.ecc_corrected_volatile);
}

template <class A, MaybeConst<GpuProcess> T>
void visit_fields(A& a, T& v) {
  a("pid", v.pid);
  a("memory_bytes", v.memory_bytes);
  a("name", v.name);
  a("type", Character{v.type});
}

template <class A, MaybeConst<Gpu> T>
void visit_fields(A& a, T& v) {
  a("index", v.index);
  a("uuid", v.uuid);
  a("name", v.name);
  a("pci", v.pci);
  a("minor", v.minor);
  a("drm_nodes", v.drm_nodes);
  a("memory_bytes", v.memory_bytes);
  a("numa_node", v.numa_node);
  a("cpu_list", v.cpu_list);
  a("compute_capability", v.compute_capability);
  a("brand", v.brand);
  a("architecture", v.architecture);
  a("persistence", v.persistence);
  a("vbios", v.vbios);
  a("gsp_firmware", v.gsp_firmware);
  a("serial", v.serial);
  a("compute_mode", v.compute_mode);
  a("virtualization", v.virtualization);
  a("pci_device_id", Hex{v.pci_device_id, 8});
  a("pci_subsystem_id", Hex{v.pci_subsystem_id, 8});
  a("fabric_clique", v.fabric_clique);
  a("mig", v.mig);
  a("health", v.health);
  a("telemetry", v.telemetry);
  a("processes", v.processes);
}

template <class A, MaybeConst<Link> T>
void visit_fields(A& a, T& v) {
  a("pcie", v.pcie);
  a("nvlinks", v.nvlinks);
  a("nvswitch", v.nvswitch);
}

template <class A, MaybeConst<DriverFile> T>
void visit_fields(A& a, T& v) {
  a("path", v.path);
  a("kind", v.kind);
  a("capabilities", v.capabilities);
  a("soname", v.soname);
  a("links", v.links);
  a("is_32bit", v.is_32bit);
  a("size", v.size);
  a("why", v.why);
}

template <class A, MaybeConst<Driver> T>
void visit_fields(A& a, T& v) {
  a("version", v.version);
  a("library_version", v.library_version);
  a("cuda_version", v.cuda_version);
  a("flavour", v.flavour);
  a("root", v.root);
  a("library_directory", v.library_directory);
  a("nvml_error", v.nvml_error);
}

template <class A, MaybeConst<PciFunction> T>
void visit_fields(A& a, T& v) {
  a("address", v.address);
  a("vendor", Hex{v.vendor, 4});
  a("device", Hex{v.device, 4});
  a("class", Hex{v.class_code, 6});
  a("driver", v.driver);
  a("iommu_group", v.iommu_group);
  a("numa_node", v.numa_node);
  a("driver_override", v.driver_override);
}

template <class A, MaybeConst<Discrepancy> T>
void visit_fields(A& a, T& v) {
  a("what", v.what);
  a("kernel", v.kernel);
  a("nvml", v.nvml);
}

template <class A, MaybeConst<Inventory> T>
void visit_fields(A& a, T& v) {
  a("generation", v.generation);
  a("boot_id", v.boot_id);
  a("driver", v.driver);
  a("gpus", v.gpus);
  a("links", v.links);
  a("nodes", v.nodes);
  a("files", v.files);
  a("functions", v.functions);
  a("differences", v.differences);
  a("notes", v.notes);
}

}  // namespace gantry::model
