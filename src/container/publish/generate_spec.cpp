// SPDX-License-Identifier: Apache-2.0
#include "container/publish/generate_spec.hpp"

#include "base/core/text.hpp"
#include "container/cdi/convert.hpp"
#include "container/cdi/names.hpp"
#include "container/cdi/transform.hpp"
#include "container/cdi/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::publish {
namespace {

using model::ContainerEdits;
using model::Inventory;

struct ModeRow {
  std::string_view word;
  SpecKind kind;
};
constexpr std::array kModes{
    ModeRow{"auto", SpecKind::Gpu},
    ModeRow{"nvml", SpecKind::Gpu},
    ModeRow{"management", SpecKind::Management},
    ModeRow{"gds", SpecKind::Gds},
    ModeRow{"gdrcopy", SpecKind::Gdrcopy},
    ModeRow{"mofed", SpecKind::Mofed},
    ModeRow{"nvswitch", SpecKind::Nvswitch},
    ModeRow{"imex", SpecKind::Imex},
};

std::string cdi_kind(const SpecOptions& options) {
  std::string_view vendor = options.vendor;
  if (vendor.empty())
    vendor = options.kind == SpecKind::Management ? "management.nvidia.com" : "nvidia.com";
  const std::string_view name =
      options.class_name.empty() ? cdi_class(options.kind) : options.class_name;
  return fmt::format("{}/{}", vendor, name);
}

std::string device_name(const plan::SelectedDevice& device, DeviceNameStrategy strategy) {
  const auto& [gpu, mig] = device;
  switch (strategy) {
    case DeviceNameStrategy::Uuid: return mig == nullptr ? gpu->uuid.text : mig->uuid.text;
    case DeviceNameStrategy::TypeIndex:
      return mig == nullptr ? fmt::format("gpu{}", gpu->index)
                            : fmt::format("mig{}:{}", gpu->index, mig->index);
    case DeviceNameStrategy::Index: break;
  }
  return mig == nullptr ? fmt::to_string(gpu->index) : fmt::format("{}:{}", gpu->index, mig->index);
}

void add_note(std::string note, std::vector<std::string>& notes) {
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(std::move(note));
}

class SpecBuilder {
 public:
  SpecBuilder(const Inventory& machine, const SpecOptions& options)
      : machine_(machine), options_(options) {
    made_.spec.kind = cdi_kind(options);
  }

  Result<GeneratedSpec> write() {
    switch (options_.kind) {
      case SpecKind::Gpu: GANTRY_CHECK(write_gpus()); break;
      case SpecKind::Management: GANTRY_CHECK(write_management()); break;
      case SpecKind::Gds: GANTRY_CHECK(write_group(model::DeviceGroup::Gds)); break;
      case SpecKind::Gdrcopy: GANTRY_CHECK(write_group(model::DeviceGroup::Gdrcopy)); break;
      case SpecKind::Mofed: GANTRY_CHECK(write_group(model::DeviceGroup::Mofed)); break;
      case SpecKind::Nvswitch: GANTRY_CHECK(write_group(model::DeviceGroup::Nvswitch)); break;
      case SpecKind::Imex: GANTRY_CHECK(write_channels()); break;
    }
    cdi::remove_duplicates(made_.spec);
    return std::move(made_);
  }

 private:
  cdi::Edits converted(const ContainerEdits& edits) {
    for (const auto& note : edits.notes) add_note(note, made_.notes);
    return cdi::from_container_edits(edits).edits;
  }

  void add_device(std::string name, cdi::Edits edits) {
    made_.spec.devices.push_back(
        {.name = std::move(name), .annotations = {}, .edits = std::move(edits)});
  }

  Status write_gpus() {
    const auto closed = model::expand_capabilities(options_.capabilities);
    const std::vector<std::string> all{"all"};
    GANTRY_TRY(const auto selection,
               plan::select(machine_, options_.devices.empty() ? all : options_.devices));
    GANTRY_TRY(const auto common, plan::common_edits(machine_, closed, options_.plan));
    made_.spec.edits = converted(common);
    for (const auto& note : selection.notes) add_note(note, made_.notes);
    if (selection.none) {
      // Every engine refuses a device without edits; NVIDIA's tool writes the same variable.
      add_device("none", {.env = {"NVCT_EMPTY_DEVICE=1"}});
      return {};
    }
    std::vector<cdi::Edits> edits;
    cdi::Edits every;
    for (const auto& device : selection.devices) {
      GANTRY_TRY(const auto own, plan::device_edits(machine_, device, closed, options_.plan));
      edits.push_back(converted(own));
      cdi::append(every, edits.back());
    }
    for (const auto strategy : options_.names) {
      for (std::size_t i = 0; i < edits.size(); ++i)
        add_device(device_name(selection.devices[i], strategy), edits[i]);
    }
    if (options_.all_device) add_device("all", std::move(every));
    return {};
  }

  Status write_management() {
    GANTRY_TRY(auto edits, plan::management_edits(machine_, options_.plan));
    GANTRY_TRY(const auto common,
               plan::common_edits(machine_, model::expand_capabilities(options_.capabilities),
                                  options_.plan));
    made_.spec.edits = converted(common);
    add_device("all", converted(edits));
    return {};
  }

  Status write_group(model::DeviceGroup group) {
    GANTRY_TRY(const auto edits, plan::group_edits(machine_, group, options_.plan));
    add_device("all", converted(edits));
    return {};
  }

  // "0", or NVIDIA's "channel0".
  Result<std::vector<std::uint32_t>> channels() const {
    const bool every = options_.devices.empty() ||
                       std::find(options_.devices.begin(), options_.devices.end(), "all") !=
                           options_.devices.end();
    if (every) return plan::imex_channels(machine_);
    std::vector<std::uint32_t> asked;
    for (std::string_view id : options_.devices) {
      const auto given = id;
      if (id.starts_with("channel")) id.remove_prefix(std::string_view("channel").size());
      const auto number = parse_u64(id);
      if (!number || *number > 0xffffffffU)
        return Error(Errc::Invalid,
                     fmt::format("\"{}\" is not the number of an IMEX channel", given));
      asked.push_back(static_cast<std::uint32_t>(*number));
    }
    return asked;
  }

  Status write_channels() {
    GANTRY_TRY(const auto wanted, channels());
    if (wanted.empty()) {
      return Error(Errc::NotFound,
                   "this machine has no IMEX channel: /dev/nvidia-caps-imex-channels is empty");
    }
    cdi::Edits every;
    for (const auto channel : wanted) {
      GANTRY_TRY(const auto edits, plan::imex_edits(machine_, channel, options_.plan));
      auto own = converted(edits);
      cdi::append(every, own);
      add_device(fmt::to_string(channel), std::move(own));
    }
    if (options_.all_device) add_device("all", std::move(every));
    return {};
  }

  const Inventory& machine_;
  const SpecOptions& options_;
  GeneratedSpec made_;
};

}  // namespace

std::string_view cdi_class(SpecKind kind) {
  switch (kind) {
    case SpecKind::Gds: return "gds";
    case SpecKind::Gdrcopy: return "gdrcopy";
    case SpecKind::Mofed: return "mofed";
    case SpecKind::Nvswitch: return "nvswitch";
    case SpecKind::Imex: return "imex-channel";
    case SpecKind::Gpu:
    case SpecKind::Management: break;
  }
  return "gpu";
}

Result<SpecKind> parse_mode(std::string_view word) {
  for (const auto& row : kModes) {
    if (row.word == word) return row.kind;
  }
  if (word == "csv" || word == "wsl") {
    return Error(Errc::Unsupported, fmt::format("mode {} is for {}, which gantry does not support",
                                                word, word == "csv" ? "Tegra machines" : "WSL"));
  }
  return Error(Errc::Invalid, fmt::format("there is no mode \"{}\"; modes are auto, nvml, "
                                          "management, gds, gdrcopy, mofed, nvswitch and imex",
                                          word));
}

Result<DeviceNameStrategy> parse_name_strategy(std::string_view word) {
  if (word == "index") return DeviceNameStrategy::Index;
  if (word == "uuid") return DeviceNameStrategy::Uuid;
  if (word == "type-index") return DeviceNameStrategy::TypeIndex;
  return Error(
      Errc::Invalid,
      fmt::format("there is no naming strategy \"{}\"; strategies are index, uuid and type-index",
                  word));
}

Result<GeneratedSpec> generate_spec(const Inventory& machine, const SpecOptions& options) {
  GANTRY_CHECK(cdi::check_kind(cdi_kind(options)));
  GANTRY_TRY(auto made, SpecBuilder(machine, options).write());
  if (options.target_version.empty()) {
    // An engine that does not know the version finds no devices and reports only that.
    if (cdi::lowest_version(made.spec) >= cdi::kV07) {
      add_note(
          "only a group may open the nodes, which needs CDI 0.7; older engines (podman 4) then "
          "find "
          "no devices: for these use --target-version 0.5, and --group-add for users",
          made.notes);
    }
    return made;
  }
  GANTRY_TRY(const auto target, cdi::parse_version(options.target_version));
  GANTRY_TRY(auto converted, cdi::downgrade(made.spec, target));
  made.spec = std::move(converted.spec);
  for (auto& word : converted.words) add_note(std::move(word), made.notes);
  return made;
}

}  // namespace gantry::publish
