// SPDX-License-Identifier: Apache-2.0
#include "sharing/backend/backends.hpp"

#include "base/core/text.hpp"
#include "sharing/mps/control_daemon.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::backend {
namespace {

constexpr const char* kDmemCapacity = "/sys/fs/cgroup/dmem.capacity";
constexpr const char* kAccident = "accident";
constexpr const char* kOrdinary = "ordinary program";
constexpr const char* kHostile = "hostile process";

const model::MigInstance* instance_of(const model::Inventory& machine, const model::GpuUuid& uuid) {
  for (const auto& gpu : machine.gpus) {
    for (const auto& instance : gpu.mig.instances) {
      if (instance.uuid == uuid) return &instance;
    }
  }
  return nullptr;
}

BackendInfo fence_facts(const model::Inventory& machine) {
  const bool here = std::any_of(machine.files.begin(), machine.files.end(), [](const auto& file) {
    return file.soname == "libcuda.so.1" && !file.is_32bit;
  });
  return {
      .name = "fence",
      .sentence =
          "Gantry's library in front of libcuda and libnvidia-ml, and an auditor on the host",
      .here = here,
      .why = here ? "needs only the driver's libcuda"
                  : "the driver has no libcuda.so.1; run `gantry doctor`",
      .guarantees = {
          {"memory", kAccident, "yes", "exact; CUDA_ERROR_OUT_OF_MEMORY at the limit"},
          {"memory", kOrdinary, "yes", "exact; totals and free memory show the share"},
          {"memory", kHostile, "in part",
           "detected from outside within 1 s; --policy stop kills it, report reports it"},
          {"time", kAccident, "yes",
           "turns of some milliseconds; a hard cap also applies to a share that is alone"},
          {"time", kOrdinary, "yes",
           "within 2 percentage points over 5 s; one long kernel is not interrupted"},
          {"time", kHostile, "in part", "detected from outside within 3 s; --policy stop kills it"},
          {"faults", kOrdinary, "yes",
           "each process has its own context: a fault ends only that process"}}};
}

BackendInfo mps_facts(const sys::Host& host) {
  const auto control = mps::ControlDaemon::find(host, "/run/gantry/mps", mps::RunMode::Direct);
  std::string why = control.ok() ? "nvidia-cuda-mps-control is installed" : control.error().text();
  return {.name = "mps",
          .sentence = "NVIDIA's Multi-Process Service: its server enforces the limits",
          .here = control.ok(),
          .why = std::move(why),
          .guarantees = {
              {"memory", kAccident, "yes",
               "the server refuses; the limit is per process, not for all together"},
              {"memory", kOrdinary, "in part",
               "the total stays the whole GPU's; only the free memory shows the limit"},
              {"memory", kHostile, "in part",
               "the server enforces it, and no other process gets the GPU; more processes get more "
               "memory"},
              {"time", kOrdinary, "in part",
               "a part of the multiprocessors, not of the time: alone on an H200, 30 % gave 39 %"},
              {"time", kHostile, "in part", "as for memory"},
              {"faults", kOrdinary, "no", "a fault of one client ends all clients of the GPU"}}};
}

BackendInfo mig_facts(const model::Inventory& machine) {
  std::size_t instances = 0;
  bool capable = false;
  for (const auto& gpu : machine.gpus) {
    instances += gpu.mig.instances.size();
    capable = capable || gpu.mig.current == model::MigMode::Disabled ||
              gpu.mig.current == model::MigMode::Enabled;
  }
  std::string why = "no GPU of this machine supports MIG";
  if (instances > 0) {
    why = fmt::format("this machine has {} instance{}: --gpu MIG-UUID", instances,
                      instances == 1 ? "" : "s");
  } else if (capable) {
    why = "there is no instance yet; create one: nvidia-smi mig -cgi PROFILE -C";
  }
  return {
      .name = "mig",
      .sentence = "a hardware instance of the GPU with its own memory, caches and multiprocessors",
      .here = instances > 0,
      .why = std::move(why),
      .guarantees = {
          {"memory", kHostile, "yes", "hardware; only in the sizes of the profiles"},
          {"time", kHostile, "yes", "hardware; time that other instances leave unused is lost"},
          {"faults", kHostile, "yes", "instances do not see each other"}}};
}

BackendInfo slicing_facts() {
  return {
      .name = "time-slicing",
      .sentence = "the driver switches between processes, without any limits",
      .here = true,
      .why = "every NVIDIA GPU supports it",
      .guarantees = {{"memory", kAccident, "no", "first come, first served"},
                     {"time", kOrdinary, "no", "equal turns for busy processes, not for tenants"},
                     {"faults", kOrdinary, "yes", "each process has its own context"}}};
}

BackendInfo dmem_facts(const sys::Host& host) {
  const auto capacity = host.read_value(kDmemCapacity);
  const bool here = capacity && contains(*capacity, "nvidia/");
  std::string why = "the kernel has no dmem controller (needs Linux 6.14 with cgroup v2)";
  if (capacity)
    why = "the driver registers no memory with the kernel's dmem controller (needs r615)";
  if (here)
    why = "the driver registers its memory with the kernel, but gantry does not use this yet";
  return {.name = "dmem",
          .sentence = "the kernel's own limit on device memory for a control group",
          .here = here,
          .why = std::move(why),
          .guarantees = {{"memory", kHostile, "yes", "in the driver, contexts included"},
                         {"time", kOrdinary, "no", "memory only"}}};
}

}  // namespace

std::vector<BackendInfo> list_backends(const model::Inventory& machine, const sys::Host& host) {
  return {fence_facts(machine), mig_facts(machine), mps_facts(host), slicing_facts(),
          dmem_facts(host)};
}

BackendChoice choose_backend(const policy::Share& share, const model::Inventory& machine) {
  using policy::Backend;
  if (share.backend != Backend::Auto) return {share.backend, "you asked for it"};
  const bool instances = !share.gpus.empty() &&
                         std::all_of(share.gpus.begin(), share.gpus.end(), [&](const auto& uuid) {
                           return instance_of(machine, uuid) != nullptr;
                         });
  if (instances && !share.memory && !share.time_limited)
    return {Backend::Mig, "its GPU is a MIG instance and there is no smaller limit"};
  return {Backend::Fence, "it limits memory and time for every CUDA program and needs no setup"};
}

namespace {

Status check_instances(const policy::Share& share, const model::Inventory& machine) {
  if (share.gpus.empty())
    return Error(Errc::Invalid, "the backend mig needs an instance: --gpu MIG-UUID");
  for (const auto& gpu : share.gpus) {
    if (instance_of(machine, gpu) != nullptr) continue;
    return Error(
        Errc::Invalid,
        fmt::format(
            "{} is not a MIG instance; name one with --gpu MIG-UUID (`gantry info` shows them)",
            gpu.text));
  }
  return {};
}

// The other backends share whole GPUs, but a GPU in MIG mode has only its instances.
Status check_whole(const policy::Share& share, const model::Inventory& machine) {
  for (const auto& uuid : share.gpus) {
    if (instance_of(machine, uuid) != nullptr) {
      return Error(Errc::Unsupported,
                   fmt::format("{} is a MIG instance, which is already a share: leave out --memory "
                               "and --compute, or create an instance with another profile",
                               uuid.text));
    }
    const auto gpu = std::find_if(machine.gpus.begin(), machine.gpus.end(),
                                  [&](const auto& one) { return one.uuid == uuid; });
    if (gpu == machine.gpus.end() || gpu->mig.instances.empty()) continue;
    return Error(Errc::Invalid, fmt::format("GPU {} is in MIG mode: name one of its instances with "
                                            "--gpu MIG-UUID (`gantry info` shows them)",
                                            gpu->index));
  }
  return {};
}

}  // namespace

Result<policy::Share> choose_and_check_backend(policy::Share share, const model::Inventory& machine,
                                               const sys::Host& host) {
  using policy::Backend;
  share.backend = choose_backend(share, machine).backend;
  const auto name = to_string(share.backend);
  for (const auto& facts : list_backends(machine, host)) {
    if (facts.name != name || facts.here) continue;
    return Error(Errc::Unsupported,
                 fmt::format("the backend {} is not available: {}; see `gantry share explain`",
                             name, facts.why));
  }
  if (share.backend == Backend::Mig) GANTRY_CHECK(check_instances(share, machine));
  if (share.backend != Backend::Mig) GANTRY_CHECK(check_whole(share, machine));
  const bool holds_limits = share.backend == Backend::Fence || share.backend == Backend::Mps;
  if (!holds_limits && (share.memory || share.time_limited)) {
    return Error(
        Errc::Unsupported,
        fmt::format(
            "{} cannot enforce --memory or --compute; leave them out, or use --backend fence",
            name));
  }
  return share;
}

}  // namespace gantry::backend
