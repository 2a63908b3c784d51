// SPDX-License-Identifier: Apache-2.0
// Which types a request means, and whether the GPU can have them.
#include "base/core/nearest.hpp"
#include "vm/vgpu/placement.hpp"
#include "vm/vgpu/plan_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gantry::vgpu {
namespace {

std::string plural(unsigned count, std::string_view type) {
  return fmt::format("{} vGPU{} of type {}", count, count == 1 ? "" : "s", type);
}

Error unknown_type(const VgpuGpu& gpu, std::string_view key, const TypeName& name) {
  if (name.mig_backed()) {
    return Error(Errc::NotFound,
                 fmt::format("{} offers no vGPU type {}: a MIG-backed type needs MIG mode and a "
                             "GPU instance {} without compute instances",
                             gpu.label(), key, mig_profile(name)))
        .advise(fmt::format("sudo nvidia-smi -i {0} -mig 1 && sudo nvidia-smi mig -i {0} -cgi {1}",
                            gpu.address.sysfs(), mig_profile(name)));
  }
  std::vector<std::string> keys;
  for (const auto& type : gpu.types) keys.push_back(type.key);
  const auto near = nearest_name(key, keys);
  return Error(Errc::NotFound,
               fmt::format("{} has no vGPU type {}{}", gpu.label(), key,
                           near.empty() ? "" : fmt::format("; the nearest is {}", near)))
      .advise(fmt::format("`gantry vgpu types --gpu {}` lists its types", gpu.index));
}

// A type with a MIG attribute that the GPU does not know is the type without it.
Result<const VgpuType*> resolve_type(const VgpuGpu& gpu, const std::string& key) {
  const auto name = parse_type_name(key);
  if (!name) return not_a_type(gpu, key);
  if (const auto* type = gpu.find_type(key)) return type;
  if (!name->attribute.empty()) {
    if (const auto* type = gpu.find_type(without_attribute(*name))) return type;
  }
  return unknown_type(gpu, key, *name);
}

Error too_many(const VgpuGpu& gpu, const TypeCount& wanted, unsigned limit) {
  const auto& type = *wanted.type;
  return Error(Errc::Busy, fmt::format("{} cannot have {}: at most {} fit ({} MiB each, {} MiB in "
                                       "all)",
                                       gpu.label(), plural(wanted.count, type.key), limit,
                                       type.framebuffer_mib, gpu.framebuffer_mib))
      .advise(limit == 0 ? fmt::format("`gantry vgpu types --gpu {}` shows what fits", gpu.index)
                         : fmt::format("ask for {} or fewer", limit));
}

Status check_parents(const VgpuGpu& gpu, const std::vector<TypeCount>& wanted) {
  if (gpu.framework == Framework::MdevOnPf) return {};
  unsigned all = 0;
  for (const auto& one : wanted) all += one.count;
  if (all <= gpu.parents.size()) return {};
  return Error(Errc::Busy, fmt::format("{} cannot have {} vGPUs: {} of its {} virtual functions "
                                       "are enabled, and each has one",
                                       gpu.label(), all, gpu.parents.size(), gpu.total_vfs))
      .advise(gpu.parents.size() < gpu.total_vfs
                  ? fmt::format("remove its vGPUs, then: echo 0 | sudo tee {}/sriov_numvfs, and "
                                "try again",
                                "/sys/bus/pci/devices/" + gpu.address.sysfs())
                  : fmt::format("ask for {} or fewer", gpu.parents.size()));
}

Status check_mig(const VgpuGpu& gpu, const std::vector<TypeCount>& wanted) {
  unsigned all = 0;
  for (const auto& one : wanted) all += one.count;
  if (!gpu.gpu_instances || all <= *gpu.gpu_instances) return {};
  std::string profiles;
  for (const auto& one : wanted) {
    const auto profile = mig_profile(parse_type_name(one.type->key).value_or(TypeName{}));
    for (unsigned i = 0; i < one.count; ++i) profiles += (profiles.empty() ? "" : ",") + profile;
  }
  return Error(Errc::Busy,
               fmt::format("{} has {} GPU instances, but {} MIG-backed vGPUs are wanted",
                           gpu.label(), *gpu.gpu_instances, all))
      .advise(fmt::format("create the instances first: sudo nvidia-smi mig -i {} -cgi {}",
                          gpu.address.sysfs(), profiles));
}

Status check_mixed(const VgpuGpu& gpu, const std::vector<TypeCount>& wanted) {
  std::vector<std::uint64_t> sizes;
  std::string text;
  for (const auto& one : wanted) {
    sizes.insert(sizes.end(), one.count, one.type->framebuffer_mib);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one.count, one.type->key);
  }
  if (gpu.is_turing()) {
    return Error(Errc::Unsupported,
                 fmt::format("{} cannot have {} together: a Turing GPU has vGPUs of one size only",
                             gpu.label(), text))
        .advise("ask for one size, or for each size on a GPU of its own");
  }
  if (place_mixed(gpu.framebuffer_mib, {}, sizes)) return {};
  return Error(
             Errc::Busy,
             fmt::format("{} cannot have {} together: with mixed sizes a vGPU has only some places "
                         "in the {} MiB of the GPU",
                         gpu.label(), text, gpu.framebuffer_mib))
      .advise("ask for fewer, or for one size");
}

bool has_mig_backed(const VgpuGpu& gpu) {
  return std::any_of(gpu.vgpus.begin(), gpu.vgpus.end(), [](const Vgpu& vgpu) {
    const auto name = parse_type_name(vgpu.type);
    return name && name->mig_backed();
  });
}

// A MIG-backed type is listed, or remembered, also without its GPU instance. Then none can be
// created, unless a vGPU that exists has such an instance.
Status check_instance(const VgpuGpu& gpu, const VgpuType& type) {
  const auto name = parse_type_name(type.key).value_or(TypeName{});
  const bool there = std::any_of(gpu.vgpus.begin(), gpu.vgpus.end(), [&](const Vgpu& vgpu) {
    const auto other = parse_type_name(vgpu.type);
    return other && other->slices == name.slices && other->gigabytes == name.gigabytes;
  });
  if (type.available > 0 || there) return {};
  return unknown_type(gpu, type.key, name);
}

// In MIG mode the driver creates no time-sliced vGPU.
Status check_no_mig(const VgpuGpu& gpu, const VgpuType& type) {
  if (type.available > 0 || (!gpu.gpu_instances && !has_mig_backed(gpu))) return {};
  return Error(Errc::Busy, fmt::format("{} has GPU instances of MIG; {} is a time-sliced type, and "
                                       "a GPU in MIG mode has none",
                                       gpu.label(), type.key))
      .advise(fmt::format("remove its vGPUs, then: sudo nvidia-smi mig -i {0} -dgi && sudo "
                          "nvidia-smi -i {0} -mig 0",
                          gpu.address.sysfs()));
}

}  // namespace

bool is_mig_backed(const VgpuType& type) {
  const auto name = parse_type_name(type.key);
  return name && name->mig_backed();
}

std::uint64_t framebuffer_of(const VgpuGpu& gpu, const Vgpu& vgpu) {
  const auto* type = gpu.find_type_id(vgpu.type_id);
  return type == nullptr ? 0 : type->framebuffer_mib;
}

Result<std::vector<TypeCount>> resolve_types(const VgpuGpu& gpu,
                                             const std::map<std::string, unsigned>& counts) {
  std::vector<TypeCount> wanted;
  for (const auto& [key, count] : counts) {
    if (count == 0) continue;
    GANTRY_TRY(const auto* type, resolve_type(gpu, key));
    const auto same = std::find_if(wanted.begin(), wanted.end(),
                                   [&](const TypeCount& one) { return one.type == type; });
    if (same == wanted.end()) {
      wanted.push_back({type, count});
    } else {
      same->count += count;
    }
  }
  // The largest first: that is the order of creation.
  std::stable_sort(wanted.begin(), wanted.end(), [](const TypeCount& a, const TypeCount& b) {
    return a.type->framebuffer_mib > b.type->framebuffer_mib;
  });
  return wanted;
}

bool needs_mixed(const std::vector<TypeCount>& wanted) {
  std::set<std::uint64_t> sizes;
  for (const auto& one : wanted) {
    if (!is_mig_backed(*one.type)) sizes.insert(one.type->framebuffer_mib);
  }
  return sizes.size() > 1;
}

Status check_fit(const VgpuGpu& gpu, const std::vector<TypeCount>& wanted) {
  const auto mig = std::count_if(wanted.begin(), wanted.end(),
                                 [](const TypeCount& one) { return is_mig_backed(*one.type); });
  if (mig != 0 && mig != static_cast<std::ptrdiff_t>(wanted.size())) {
    return Error(Errc::Invalid, fmt::format("{} cannot have time-sliced and MIG-backed vGPUs at "
                                            "the same time",
                                            gpu.label()));
  }
  GANTRY_CHECK(check_parents(gpu, wanted));
  for (const auto& one : wanted)
    GANTRY_CHECK(mig != 0 ? check_instance(gpu, *one.type) : check_no_mig(gpu, *one.type));
  if (mig != 0) return check_mig(gpu, wanted);
  if (needs_mixed(wanted)) return check_mixed(gpu, wanted);
  unsigned all = 0;
  for (const auto& one : wanted) all += one.count;
  for (const auto& one : wanted) {
    if (one.type->max_instances == 0 || all <= one.type->max_instances) continue;
    return too_many(gpu, {one.type, all}, one.type->max_instances);
  }
  return {};
}

Status check_places(const VgpuGpu& gpu, const std::vector<TypeCount>& wanted,
                    const std::vector<const Vgpu*>& kept) {
  std::vector<PlacedVgpu> taken;
  std::map<std::string, unsigned> there;
  for (const auto* vgpu : kept) {
    if (!vgpu->placement) return {};
    taken.push_back({std::uint64_t{*vgpu->placement} * 1024, framebuffer_of(gpu, *vgpu)});
    ++there[vgpu->type_id];
  }
  std::vector<std::uint64_t> sizes;
  for (const auto& one : wanted) {
    const auto missing = one.count - std::min(one.count, there[one.type->id]);
    sizes.insert(sizes.end(), missing, one.type->framebuffer_mib);
  }
  if (place_mixed(gpu.framebuffer_mib, taken, sizes)) return {};
  return Error(Errc::Busy, fmt::format("{} has enough memory for these vGPUs, but the remaining "
                                       "vGPUs occupy the positions that their sizes need",
                                       gpu.label()))
      .advise(fmt::format("remove its vGPUs first, then apply the set: `gantry vgpu remove --all "
                          "--gpu {}`",
                          gpu.index));
}

Error in_use(const VgpuGpu& gpu, const Vgpu& vgpu) {
  return Error(Errc::Busy, fmt::format("the vGPU {} ({}) of {} is in use by process {}", vgpu.id(),
                                       vgpu.type.empty() ? "type " + vgpu.type_id : vgpu.type,
                                       gpu.label(), fmt::join(vgpu.holders, ", ")))
      .advise(
          fmt::format("stop that virtual machine first: ps -fp {}", fmt::join(vgpu.holders, ",")));
}

Error not_a_type(const VgpuGpu& gpu, std::string_view key) {
  return Error(Errc::Invalid, fmt::format("`{}` is not the name of a vGPU type", key))
      .advise(fmt::format("`gantry vgpu types --gpu {}` lists the types of this GPU", gpu.index));
}

Error no_vgpus(const VgpuGpu& gpu) {
  return Error(Errc::Unsupported, fmt::format("{} has no vGPUs: {}", gpu.label(), gpu.problem))
      .advise("`gantry doctor` tells what is missing");
}

}  // namespace gantry::vgpu
