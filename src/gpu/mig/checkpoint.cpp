// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/checkpoint.hpp"

#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "gpu/mig/profile_table_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::mig {
namespace {

constexpr std::size_t kMaxCheckpointBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxCheckpointItems = 256;
constexpr std::uint64_t kMaxCheckpointNumber = 65'535;

// NVML_GPU_INSTANCE_PROFILE_* by slices and attribute. "wide" stands for the one with more memory
// than the usual profile of so many slices (1_SLICE_REV2).
struct NumberRow {
  std::string_view attribute;
  unsigned slices;
  unsigned number;
};
constexpr NumberRow kGpuNumbers[]{
    {"", 1, 0},         {"", 2, 1},        {"", 3, 2},      {"", 4, 3},     {"", 7, 4},
    {"", 8, 5},         {"", 6, 6},        {"+me", 1, 7},   {"+me", 2, 8},  {"wide", 1, 9},
    {"+gfx", 1, 10},    {"+gfx", 2, 11},   {"+gfx", 4, 12}, {"-me", 1, 13}, {"-me", 2, 14},
    {"+me.all", 1, 15}, {"+me.all", 2, 16}};

// NVML_COMPUTE_INSTANCE_PROFILE_* of 1, 2, 3, ... slices; 9 where there is none.
constexpr std::array<unsigned, 9> kComputeNumbers{9, 0, 1, 2, 3, 9, 6, 4, 5};

std::string attribute_of(const ProfileName& name) {
  if (!name.with.empty()) return fmt::format("+{}", fmt::join(name.with, ","));
  if (!name.without.empty()) return fmt::format("-{}", fmt::join(name.without, ","));
  return {};
}

bool is_wide(const MigGpu& gpu, const ProfileName& name) {
  return std::any_of(gpu.profiles.begin(), gpu.profiles.end(), [&](const GpuProfile& other) {
    const auto parsed = parse_profile_name(other.name);
    return parsed.ok() && attribute_of(*parsed).empty() && parsed->gpu_slices == name.gpu_slices &&
           parsed->memory_gb < name.memory_gb;
  });
}

void write_instance(json::Writer& out, const MigGpu& gpu, const GpuInstance& instance) {
  const auto profile = std::find_if(gpu.profiles.begin(), gpu.profiles.end(),
                                    [&](const auto& row) { return row.name == instance.profile; });
  const auto number = profile == gpu.profiles.end() ? std::nullopt : nvml_number(gpu, *profile);
  out.object([&] {
    out.member("ProfileID", number);
    out.object("Placement", [&] {
      out.member("Start", instance.place.start);
      out.member("Size", instance.place.size);
    });
    out.array("ComputeInstances", instance.compute, [&](const ComputeInstance& compute) {
      const auto name = parse_profile_name(compute.profile);
      const auto slices = name.ok() ? name->compute_slices : 0;
      out.object([&] {
        out.member("ProfileID", slices < kComputeNumbers.size() ? kComputeNumbers[slices] : 9U);
        out.member("EngProfileID", 0);
      });
    });
  });
}

struct CheckpointReader {
  std::string_view file;

  Error wrong(std::string_view what) const {
    return {Errc::Corrupt, fmt::format("{}: {}", file, what)};
  }

  Result<unsigned> number(json::Value object, std::string_view name) const {
    const auto value = object[name].u64();
    if (!value || *value > kMaxCheckpointNumber)
      return wrong(fmt::format("`{}` must be a number", name));
    return static_cast<unsigned>(*value);
  }

  // The elements of a list; null is an empty one.
  Result<std::vector<json::Value>> list(json::Value object, std::string_view name) const {
    std::vector<json::Value> items;
    const auto value = object[name];
    if (value.is(json::Kind::Null) || value.is(json::Kind::Absent)) return items;
    if (!value.is(json::Kind::Array) || value.size() > kMaxCheckpointItems)
      return wrong(fmt::format("`{}` must be a list of at most {}", name, kMaxCheckpointItems));
    for (const auto item : value) {
      if (!item.is(json::Kind::Object)) return wrong(fmt::format("`{}` must have objects", name));
      items.push_back(item);
    }
    return items;
  }

  Result<CheckpointInstance> instance(json::Value object) const {
    CheckpointInstance found;
    GANTRY_TRY(found.profile, number(object, "ProfileID"));
    GANTRY_TRY(found.place.start, number(object["Placement"], "Start"));
    GANTRY_TRY(found.place.size, number(object["Placement"], "Size"));
    GANTRY_TRY(const auto parts, list(object, "ComputeInstances"));
    for (const auto part : parts) {
      CheckpointCompute compute;
      GANTRY_TRY(compute.profile, number(part, "ProfileID"));
      GANTRY_TRY(compute.engines, number(part, "EngProfileID"));
      found.compute.push_back(compute);
    }
    return found;
  }

  Result<CheckpointGpu> gpu(json::Value object) const {
    CheckpointGpu found{.uuid = {object["UUID"].string_or_empty()}, .instances = {}};
    if (found.uuid.text.empty()) return wrong("a device has no `UUID`");
    GANTRY_TRY(const auto mode, number(object, "MigMode"));
    if (mode > 1) return wrong("`MigMode` must be 0 or 1");
    found.enabled = mode == 1;
    GANTRY_TRY(const auto instances, list(object, "GpuInstances"));
    for (const auto item : instances) {
      GANTRY_TRY(auto instance, this->instance(item));
      found.instances.push_back(std::move(instance));
    }
    return found;
  }
};

std::optional<unsigned> compute_slices_of(unsigned number) {
  const auto at = std::find(kComputeNumbers.begin() + 1, kComputeNumbers.end(), number);
  if (number == 9 || at == kComputeNumbers.end()) return std::nullopt;
  return static_cast<unsigned>(at - kComputeNumbers.begin());
}

Result<RequestedInstance> saved_instance(const CheckpointInstance& saved, const MigGpu& gpu) {
  for (const auto& profile : gpu.profiles) {
    if (nvml_number(gpu, profile) != saved.profile) continue;
    GANTRY_TRY(auto name, parse_profile_name(profile.name));
    RequestedInstance request{.profile = std::move(name), .start = saved.place.start};
    for (const auto& compute : saved.compute) {
      const auto slices = compute_slices_of(compute.profile);
      if (!slices) {
        return Error(Errc::NotFound,
                     fmt::format("the checkpoint has a compute instance with NVML's "
                                 "profile number {}, which is not known",
                                 compute.profile));
      }
      request.compute_slices.push_back(*slices);
    }
    if (request.compute_slices.empty()) request.compute_slices = {0};
    return request;
  }
  return Error(Errc::NotFound,
               fmt::format("the checkpoint has an instance with NVML's profile number {}, which {} "
                           "does not offer",
                           saved.profile, gpu.name));
}

}  // namespace

std::optional<unsigned> nvml_number(const MigGpu& gpu, const GpuProfile& profile) {
  const auto name = parse_profile_name(profile.name);
  if (!name.ok()) return std::nullopt;
  auto attribute = attribute_of(*name);
  if (attribute.empty() && is_wide(gpu, *name)) attribute = "wide";
  for (const auto& row : kGpuNumbers) {
    if (row.slices == name->gpu_slices && row.attribute == attribute) return row.number;
  }
  return std::nullopt;
}

std::string write_checkpoint(const std::vector<MigGpu>& gpus) {
  json::Writer out;
  const auto write_gpu = [&](const MigGpu& gpu) {
    const bool enabled = gpu.current == model::MigMode::Enabled;
    out.object([&] {
      out.member("UUID", gpu.uuid.text);
      out.member("MigMode", enabled ? 1 : 0);
      out.array("GpuInstances", enabled ? gpu.instances : std::vector<GpuInstance>{},
                [&](const GpuInstance& instance) { write_instance(out, gpu, instance); });
    });
  };
  out.object([&] {
    out.member("Version", "v1");
    out.object("MigState", [&] {
      out.array("Devices", [&] {
        for (const auto& gpu : gpus) {
          if (gpu.current != model::MigMode::Unsupported) write_gpu(gpu);
        }
      });
    });
  });
  return std::move(out).text();
}

Result<std::vector<CheckpointGpu>> parse_checkpoint(std::string_view text, std::string_view file) {
  const CheckpointReader reader{file};
  if (text.size() > kMaxCheckpointBytes) return reader.wrong("larger than 1 MiB");
  auto document = json::Document::parse(std::string(text));
  if (!document.ok()) return std::move(document).error().in(file);
  if (document->root()["Version"].string_or_empty() != "v1")
    return reader.wrong("`Version` is missing or not v1, so this is not a MIG checkpoint");
  GANTRY_TRY(const auto devices, reader.list((*document)["MigState"], "Devices"));
  std::vector<CheckpointGpu> gpus;
  for (const auto device : devices) {
    GANTRY_TRY(auto gpu, reader.gpu(device));
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

Result<LayoutRequest> saved_layout(const CheckpointGpu& saved, const MigGpu& gpu) {
  LayoutRequest request{.enabled = saved.enabled, .instances = {}};
  if (!saved.enabled) return request;
  for (const auto& instance : saved.instances) {
    GANTRY_TRY(auto item, saved_instance(instance, gpu));
    request.instances.push_back(std::move(item));
  }
  return request;
}

}  // namespace gantry::mig
