// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/plan.hpp"

#include "base/core/text.hpp"
#include "vm/vgpu/plan_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gantry::vgpu {
namespace {

Error no_gpu(const model::PciAddress& address) {
  return Error(Errc::NotFound, fmt::format("there is no GPU {}", address.sysfs()))
      .advise("`gantry vgpu list` shows the GPUs of this machine");
}

// Busy: nothing was done, and the driver may answer later.
Error silent_driver(const VgpuGpu& gpu) {
  return Error(Errc::Busy, fmt::format("{}: {}", gpu.label(), gpu.problem))
      .advise("`sudo dmesg | grep -i nvidia` may say why; then try again");
}

Step enable_vfs(const VgpuGpu& gpu) {
  return {.kind = Step::Kind::EnableVfs, .vgpu = {.gpu = gpu.address}, .count = gpu.total_vfs};
}

// Existing vGPUs divided into those that stay and those that go. One in use stays before one that
// is idle.
struct VgpuPartition {
  std::vector<const Vgpu*> kept;
  std::vector<const Vgpu*> removed;
};

VgpuPartition sort_existing(const VgpuGpu& gpu, const std::vector<TypeCount>& wanted) {
  std::vector<const Vgpu*> all;
  for (const auto& vgpu : gpu.vgpus) all.push_back(&vgpu);
  std::stable_sort(all.begin(), all.end(), [](const Vgpu* a, const Vgpu* b) {
    return !a->holders.empty() && b->holders.empty();
  });
  std::map<std::string, unsigned> left;
  for (const auto& one : wanted) left[one.type->id] = one.count;
  VgpuPartition sorted;
  for (const auto* vgpu : all) {
    auto& count = left[vgpu->type_id];
    (count > 0 ? sorted.kept : sorted.removed).push_back(vgpu);
    if (count > 0) --count;
  }
  return sorted;
}

// Whether the GPU is in the mode for mixed sizes. Only its vGPUs show it: there are two sizes, or
// another size is still offered.
bool mixes_sizes(const VgpuGpu& gpu) {
  std::set<std::uint64_t> sizes;
  for (const auto& vgpu : gpu.vgpus) {
    // A type that is not known has no size, so it says nothing about the mode.
    if (const auto size = framebuffer_of(gpu, vgpu); size != 0) sizes.insert(size);
  }
  if (sizes.size() != 1) return sizes.size() > 1;
  return std::any_of(gpu.types.begin(), gpu.types.end(), [&](const VgpuType& type) {
    return type.available > 0 && !is_mig_backed(type) && !sizes.contains(type.framebuffer_mib);
  });
}

// The parents that can take a new vGPU once the others are removed, in their order.
std::vector<model::PciAddress> free_parents(const VgpuGpu& gpu,
                                            const std::vector<const Vgpu*>& kept) {
  std::vector<model::PciAddress> free;
  for (const auto& parent : gpu.parents) {
    const bool taken = gpu.framework != Framework::MdevOnPf &&
                       std::any_of(kept.begin(), kept.end(), [&](const Vgpu* vgpu) {
                         return vgpu->parent == parent.address;
                       });
    if (!taken) free.push_back(parent.address);
  }
  return free;
}

// Creates what `wanted` has more than `kept`.
Status add_creations(const VgpuGpu& gpu, const std::vector<TypeCount>& wanted,
                     const VgpuPartition& sorted, const NewUuid& new_uuid, Plan& plan) {
  auto parents = free_parents(gpu, sorted.kept);
  for (const auto& one : wanted) {
    const auto there = std::count_if(sorted.kept.begin(), sorted.kept.end(), [&](const Vgpu* vgpu) {
      return vgpu->type_id == one.type->id;
    });
    for (auto i = static_cast<unsigned>(there); i < one.count; ++i) {
      if (parents.empty())
        return Error(Errc::Internal, fmt::format("{} has no free parent", gpu.label()));
      VgpuSpec spec{.gpu = gpu.address,
                    .parent = parents.front(),
                    .type = one.type->key,
                    .type_id = one.type->id};
      if (gpu.framework != Framework::VendorVfio) spec.uuid = new_uuid();
      if (gpu.framework != Framework::MdevOnPf) parents.erase(parents.begin());
      plan.steps.push_back({.kind = Step::Kind::Create, .vgpu = spec});
      plan.result.push_back(std::move(spec));
    }
  }
  return {};
}

Status plan_gpu(const VgpuGpu& gpu, const std::map<std::string, unsigned>& counts,
                const NewUuid& new_uuid, Plan& plan) {
  if (gpu.silent) return silent_driver(gpu);
  if (gpu.framework == Framework::None) return counts.empty() ? Status{} : no_vgpus(gpu);
  GANTRY_TRY(const auto wanted, resolve_types(gpu, counts));
  GANTRY_CHECK(check_fit(gpu, wanted));
  auto sorted = sort_existing(gpu, wanted);
  const bool mixed = needs_mixed(wanted);
  // The mode can change only while the GPU has no vGPU at all.
  if (mixed && !mixes_sizes(gpu)) {
    sorted.removed.insert(sorted.removed.end(), sorted.kept.begin(), sorted.kept.end());
    sorted.kept.clear();
  }
  if (mixed) GANTRY_CHECK(check_places(gpu, wanted, sorted.kept));
  for (const auto* vgpu : sorted.removed) {
    if (!vgpu->holders.empty()) return in_use(gpu, *vgpu);
  }
  for (const auto* vgpu : sorted.removed)
    plan.steps.push_back({.kind = Step::Kind::Remove, .vgpu = spec_of(*vgpu)});
  if (mixed && !mixes_sizes(gpu))
    plan.steps.push_back({.kind = Step::Kind::EnableMixed, .vgpu = {.gpu = gpu.address}});
  for (const auto* vgpu : sorted.kept) plan.result.push_back(spec_of(*vgpu));
  return add_creations(gpu, wanted, sorted, new_uuid, plan);
}

bool wants_any(const DesiredVgpus& wanted) {
  return std::any_of(wanted.counts.begin(), wanted.counts.end(),
                     [](const auto& one) { return one.second > 0; });
}

// Removals of all GPUs come first, so that a vGPU that cannot go stops the change while it is easy
// to undo.
void removals_first(Plan& plan) {
  std::stable_sort(plan.steps.begin(), plan.steps.end(), [](const Step& a, const Step& b) {
    return a.kind == Step::Kind::Remove && b.kind != Step::Kind::Remove;
  });
}

const Vgpu* find_vgpu(const VgpuGpu& gpu, std::string_view id) {
  const auto found = std::find_if(gpu.vgpus.begin(), gpu.vgpus.end(),
                                  [&](const Vgpu& vgpu) { return vgpu.id() == to_lower(id); });
  return found == gpu.vgpus.end() ? nullptr : &*found;
}

bool same_vgpu(const VgpuSpec& a, const VgpuSpec& b) {
  return a.uuid == b.uuid && a.parent == b.parent && a.type == b.type;
}

// The type's number may differ after an update of the driver; the name does not.
Status refresh_type(const VgpuGpu& gpu, VgpuSpec& spec) {
  const auto* type = gpu.find_type(spec.type);
  if (type != nullptr) {
    spec.type_id = type->id;
    return {};
  }
  return Error(Errc::NotFound, fmt::format("{} no longer has the vGPU type {}, which the stored "
                                           "vGPU {} needs",
                                           gpu.label(), spec.type, spec.id()))
      .advise(fmt::format("`gantry vgpu types --gpu {}` lists its types; apply another set",
                          gpu.index));
}

// Another kernel or driver may offer vGPUs in another way, or on other virtual functions.
Status check_parent(const VgpuGpu& gpu, const VgpuSpec& spec) {
  const bool mediated = gpu.framework != Framework::VendorVfio;
  const bool exists =
      std::any_of(gpu.parents.begin(), gpu.parents.end(),
                  [&](const VgpuParent& parent) { return parent.address == spec.parent; });
  if (exists && mediated != spec.uuid.empty()) return {};
  return Error(Errc::Unsupported,
               fmt::format("the stored vGPU {} is {}on {}, but {} has {} now: the kernel, the "
                           "driver or the number of virtual functions changed",
                           spec.id(), spec.uuid.empty() ? "" : "a mediated device ",
                           spec.parent.sysfs(), gpu.label(), describe(gpu.framework)))
      .advise("apply a set again: `gantry vgpu apply -f FILE -c NAME`");
}

Error no_stored_gpu(const model::PciAddress& address) {
  return Error(Errc::NotFound, fmt::format("the GPU {}, which has stored vGPUs, is not on this "
                                           "machine",
                                           address.sysfs()))
      .advise(
          "if it was removed for good, delete its entries from intent.json below "
          "/var/lib/gantry/vgpu");
}

Status plan_exact_gpu(const VgpuGpu& gpu, std::vector<VgpuSpec> specs, Plan& plan) {
  if (gpu.silent) return silent_driver(gpu);
  if (gpu.framework == Framework::None) return specs.empty() ? Status{} : no_vgpus(gpu);
  std::map<std::string, unsigned> counts;
  for (auto& spec : specs) {
    GANTRY_CHECK(refresh_type(gpu, spec));
    GANTRY_CHECK(check_parent(gpu, spec));
    ++counts[spec.type];
  }
  GANTRY_TRY(const auto wanted, resolve_types(gpu, counts));
  GANTRY_CHECK(check_fit(gpu, wanted));
  std::stable_sort(specs.begin(), specs.end(), [&](const VgpuSpec& a, const VgpuSpec& b) {
    return gpu.find_type(a.type)->framebuffer_mib > gpu.find_type(b.type)->framebuffer_mib;
  });
  const bool change_mode = needs_mixed(wanted) && !mixes_sizes(gpu);
  std::vector<VgpuSpec> kept;
  for (const auto& vgpu : gpu.vgpus) {
    const auto existing = spec_of(vgpu);
    const bool stays =
        !change_mode && std::any_of(specs.begin(), specs.end(),
                                    [&](const auto& one) { return same_vgpu(one, existing); });
    if (stays) {
      kept.push_back(existing);
    } else if (!vgpu.holders.empty()) {
      return in_use(gpu, vgpu);
    } else {
      plan.steps.push_back({.kind = Step::Kind::Remove, .vgpu = existing});
    }
  }
  if (change_mode)
    plan.steps.push_back({.kind = Step::Kind::EnableMixed, .vgpu = {.gpu = gpu.address}});
  for (const auto& spec : specs) {
    const bool there = std::any_of(kept.begin(), kept.end(),
                                   [&](const auto& one) { return same_vgpu(one, spec); });
    if (!there) plan.steps.push_back({.kind = Step::Kind::Create, .vgpu = spec});
    plan.result.push_back(spec);
  }
  return {};
}

// A request that is wrong on every GPU is refused before virtual functions are enabled.
Status check_words(const VgpuGpu& gpu, const Addition& addition) {
  if (!parse_type_name(addition.type)) return not_a_type(gpu, addition.type);
  const auto& uuid = addition.uuid;
  if (uuid.empty()) return {};
  if (!is_uuid(uuid)) {
    return Error(Errc::Invalid, fmt::format("`{}` is not a UUID", uuid))
        .advise(
            "write 36 characters, such as 83b8f4f2-509f-382f-3c1e-e6bfe0fa1001, or leave "
            "--uuid out");
  }
  if (addition.count != 1)
    return Error(Errc::Invalid, "one UUID cannot name several vGPUs; leave --uuid or --count out");
  return {};
}

Status check_uuid(const std::vector<VgpuGpu>& gpus, const VgpuGpu& gpu, const Addition& addition) {
  const auto& uuid = addition.uuid;
  if (uuid.empty()) return {};
  if (gpu.framework == Framework::VendorVfio) {
    return Error(Errc::Invalid, fmt::format("the vGPUs of {} have no UUID: each is a virtual "
                                            "function",
                                            gpu.label()))
        .advise("leave --uuid out");
  }
  for (const auto& other : gpus) {
    if (find_vgpu(other, uuid) == nullptr) continue;
    return Error(Errc::Exists,
                 fmt::format("the vGPU {} exists already on {}", to_lower(uuid), other.label()))
        .advise("choose another UUID, or leave --uuid out");
  }
  return {};
}

// If a GPU must first get its virtual functions, nothing else is done in this round.
bool only_enable_vfs(Plan& plan, const std::vector<const VgpuGpu*>& without) {
  if (without.empty()) return false;
  for (const auto* gpu : without) plan.steps.push_back(enable_vfs(*gpu));
  plan.again = true;
  return true;
}

}  // namespace

VgpuSpec spec_of(const Vgpu& vgpu) {
  return {.gpu = vgpu.gpu,
          .parent = vgpu.parent,
          .type = vgpu.type,
          .type_id = vgpu.type_id,
          .uuid = vgpu.uuid};
}

std::string describe(const Step& step) {
  const auto& vgpu = step.vgpu;
  const auto type = vgpu.type.empty() ? "type " + vgpu.type_id : vgpu.type;
  switch (step.kind) {
    case Step::Kind::EnableVfs:
      return fmt::format("enable {} virtual functions of {}", step.count, vgpu.gpu.sysfs());
    case Step::Kind::EnableMixed: return fmt::format("allow mixed sizes on {}", vgpu.gpu.sysfs());
    case Step::Kind::Remove: return fmt::format("remove {} ({})", vgpu.id(), type);
    case Step::Kind::Create:
      return vgpu.uuid.empty()
                 ? fmt::format("create {} on {}", type, vgpu.parent.sysfs())
                 : fmt::format("create {} {} on {}", type, vgpu.uuid, vgpu.parent.sysfs());
  }
  return "";
}

Result<Plan> plan_counts(const std::vector<VgpuGpu>& gpus, const std::vector<DesiredVgpus>& wanted,
                         const NewUuid& new_uuid) {
  Plan plan;
  std::vector<const VgpuGpu*> without;
  for (const auto& one : wanted) {
    const auto* gpu = find_gpu(gpus, one.gpu);
    if (gpu == nullptr) return no_gpu(one.gpu);
    plan.gpus.push_back(one.gpu);
    if (gpu->framework == Framework::VfsOff && wants_any(one)) without.push_back(gpu);
  }
  // Refusals of the other GPUs come before any virtual function is enabled.
  Plan rest{.gpus = plan.gpus};
  for (const auto& one : wanted) {
    const auto* gpu = find_gpu(gpus, one.gpu);
    if (gpu->framework != Framework::VfsOff)
      GANTRY_CHECK(plan_gpu(*gpu, one.counts, new_uuid, rest));
  }
  if (only_enable_vfs(plan, without)) return plan;
  removals_first(rest);
  return rest;
}

Result<Plan> plan_addition(const std::vector<VgpuGpu>& gpus, const Addition& addition,
                           const NewUuid& new_uuid) {
  const auto* gpu = find_gpu(gpus, addition.gpu);
  if (gpu == nullptr) return no_gpu(addition.gpu);
  GANTRY_CHECK(check_words(*gpu, addition));
  Plan plan{.gpus = {addition.gpu}};
  if (gpu->framework == Framework::VfsOff) {
    only_enable_vfs(plan, {gpu});
    return plan;
  }
  GANTRY_CHECK(check_uuid(gpus, *gpu, addition));
  std::map<std::string, unsigned> counts;
  for (const auto& vgpu : gpu->vgpus) {
    if (vgpu.type.empty()) {
      return Error(Errc::Unsupported,
                   fmt::format("{} has the vGPU {} of type number {}, whose name is not known",
                               gpu->label(), vgpu.id(), vgpu.type_id))
          .advise("`gantry vgpu apply` replaces all vGPUs of a GPU");
    }
    ++counts[vgpu.type];
  }
  counts[addition.type] += addition.count;
  GANTRY_CHECK(plan_gpu(
      *gpu, counts, addition.uuid.empty() ? new_uuid : [&] { return to_lower(addition.uuid); },
      plan));
  const bool removes = std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) {
    return step.kind == Step::Kind::Remove;
  });
  if (!removes) return plan;
  return Error(Errc::Busy,
               fmt::format("{} has vGPUs of one size; {} has another, and mixed sizes can be "
                           "allowed only while the GPU has no vGPU",
                           gpu->label(), addition.type))
      .advise(fmt::format("remove its vGPUs first, or apply a set with both types: `gantry vgpu "
                          "remove --all --gpu {}`",
                          gpu->index));
}

Result<Plan> plan_removal(const std::vector<VgpuGpu>& gpus, const std::vector<std::string>& ids) {
  Plan plan;
  std::set<std::string> gone;
  std::set<model::PciAddress> touched;
  for (const auto& id : ids) {
    const VgpuGpu* gpu = nullptr;
    const Vgpu* vgpu = nullptr;
    for (const auto& one : gpus) {
      if (vgpu == nullptr && (vgpu = find_vgpu(one, id)) != nullptr) gpu = &one;
    }
    if (vgpu == nullptr) {
      for (const auto& one : gpus) {
        if (one.silent) return silent_driver(one);
      }
      return Error(Errc::NotFound, fmt::format("there is no vGPU {}", id))
          .advise("`gantry vgpu list` shows the vGPUs of this machine");
    }
    if (gpu->silent) return silent_driver(*gpu);
    if (!vgpu->holders.empty()) return in_use(*gpu, *vgpu);
    if (!gone.insert(vgpu->id()).second) continue;
    touched.insert(gpu->address);
    plan.steps.push_back({.kind = Step::Kind::Remove, .vgpu = spec_of(*vgpu)});
  }
  for (const auto& gpu : gpus) {
    if (!touched.contains(gpu.address)) continue;
    plan.gpus.push_back(gpu.address);
    for (const auto& vgpu : gpu.vgpus) {
      if (!gone.contains(vgpu.id())) plan.result.push_back(spec_of(vgpu));
    }
  }
  return plan;
}

Result<Plan> plan_exact(const std::vector<VgpuGpu>& gpus,
                        const std::vector<model::PciAddress>& addresses,
                        const std::vector<VgpuSpec>& specs) {
  Plan plan{.gpus = addresses};
  std::vector<const VgpuGpu*> without;
  Plan rest{.gpus = addresses};
  for (const auto& address : addresses) {
    const auto* gpu = find_gpu(gpus, address);
    std::vector<VgpuSpec> own;
    for (const auto& spec : specs) {
      if (spec.gpu == address) own.push_back(spec);
    }
    if (gpu == nullptr && own.empty()) continue;
    if (gpu == nullptr) return no_stored_gpu(address);
    if (gpu->framework == Framework::VfsOff) {
      if (!own.empty()) without.push_back(gpu);
      continue;
    }
    GANTRY_CHECK(plan_exact_gpu(*gpu, std::move(own), rest));
  }
  if (only_enable_vfs(plan, without)) return plan;
  removals_first(rest);
  return rest;
}

Plan join(Plan first, Plan second) {
  const auto append = [](auto& to, auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  if (first.again != second.again) return first.again ? first : second;
  append(first.gpus, second.gpus);
  append(first.steps, second.steps);
  append(first.result, second.result);
  removals_first(first);
  return first;
}

}  // namespace gantry::vgpu
