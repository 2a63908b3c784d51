// SPDX-License-Identifier: Apache-2.0
#include "container/plan/device_selection.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gantry::plan {
namespace {

using model::Gpu;
using model::Inventory;

constexpr std::size_t kMaxDevicesInMessage = 16;    // devices listed in a message
constexpr std::size_t kMaxQuotedDeviceBytes = 80;   // bytes of a request shown in a message
constexpr std::size_t kMaxRequestedDevices = 1024;  // 16 GPUs of 7 instances are 112

bool same_text(std::string_view a, std::string_view b) {
  return a.size() == b.size() && to_lower(a) == to_lower(b);
}

Error device_not_found(const Inventory& machine, std::string_view what) {
  return {Errc::NotFound, fmt::format("there is no {} on this machine; it has {}", what,
                                      describe_devices(machine))};
}

std::string quoted(std::string_view id) {
  return fmt::format("GPU \"{}{}\"", id.substr(0, kMaxQuotedDeviceBytes),
                     id.size() > kMaxQuotedDeviceBytes ? "..." : "");
}

const Gpu* by_index(const Inventory& machine, std::uint64_t index) {
  for (const auto& gpu : machine.gpus) {
    if (gpu.index >= 0 && static_cast<std::uint64_t>(gpu.index) == index) return &gpu;
  }
  return nullptr;
}

std::string why_no_instances(const Gpu& gpu) {
  if (gpu.mig.current == model::MigMode::Enabled) return "";
  return fmt::format("; GPU {} is not in MIG mode, as far as the inventory knows", gpu.index);
}

Result<SelectedDevice> by_instance(const Inventory& machine, const Gpu* gpu, std::uint64_t instance,
                                   std::string_view id) {
  if (gpu == nullptr) return device_not_found(machine, quoted(id));
  for (const auto& mig : gpu->mig.instances) {
    if (mig.index >= 0 && static_cast<std::uint64_t>(mig.index) == instance)
      return SelectedDevice{gpu, &mig};
  }
  return device_not_found(machine, fmt::format("MIG instance \"{}\"", id))
      .in(fmt::format("GPU {}", gpu->index));
}

// "MIG-GPU-uuid/gi/ci", the names of drivers before 470.
Result<SelectedDevice> by_old_mig_name(const Inventory& machine, std::string_view id) {
  const auto parts = split(id.substr(std::string_view("MIG-").size()), '/');
  if (parts.size() == 3) {
    const auto gi = parse_u64(parts[1]);
    const auto ci = parse_u64(parts[2]);
    for (const auto& gpu : machine.gpus) {
      if (!gi || !ci || !same_text(gpu.uuid.text, parts[0])) continue;
      for (const auto& mig : gpu.mig.instances) {
        if (mig.gpu_instance >= 0 && mig.compute_instance >= 0 &&
            static_cast<std::uint64_t>(mig.gpu_instance) == *gi &&
            static_cast<std::uint64_t>(mig.compute_instance) == *ci) {
          return SelectedDevice{&gpu, &mig};
        }
      }
    }
  }
  return device_not_found(machine,
                          fmt::format("MIG instance \"{}\"", id.substr(0, kMaxQuotedDeviceBytes)));
}

std::optional<SelectedDevice> by_uuid(const Inventory& machine, std::string_view id) {
  if (id.empty()) return std::nullopt;  // the driver may not know a GPU's UUID yet
  for (const auto& gpu : machine.gpus) {
    if (same_text(gpu.uuid.text, id)) return SelectedDevice{&gpu, nullptr};
    for (const auto& mig : gpu.mig.instances) {
      if (same_text(mig.uuid.text, id)) return SelectedDevice{&gpu, &mig};
    }
  }
  return std::nullopt;
}

Result<SelectedDevice> by_number(const Inventory& machine, std::string_view id) {
  const auto colon = id.find(':');
  const auto index = parse_u64(id.substr(0, colon));
  const Gpu* gpu = index ? by_index(machine, *index) : nullptr;
  if (colon == std::string_view::npos) {
    if (gpu == nullptr) return device_not_found(machine, quoted(id));
    return SelectedDevice{gpu, nullptr};
  }
  const auto instance = parse_u64(id.substr(colon + 1));
  if (!instance) return device_not_found(machine, quoted(id));
  auto found = by_instance(machine, gpu, *instance, id);
  if (!found.ok() && gpu != nullptr) {
    return Error(found.error().code(), found.error().text() + why_no_instances(*gpu));
  }
  return found;
}

bool is_number_or_pair(std::string_view id) {
  return !id.empty() && id.size() <= 21 && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == ':';
  }) && std::count(id.begin(), id.end(), ':') <= 1;
}

// "gpu0", "mig0:1": names of a specification with --device-name-strategy type-index.
std::optional<std::string_view> without_type(std::string_view id) {
  const bool is_instance = id.starts_with("mig");
  if (!is_instance && !id.starts_with("gpu")) return std::nullopt;
  id.remove_prefix(3);
  const bool has_colon = id.find(':') != std::string_view::npos;
  if (!is_number_or_pair(id) || has_colon != is_instance) return std::nullopt;
  return id;
}

Result<SelectedDevice> find(const Inventory& machine, std::string_view id) {
  if (const auto number = without_type(id)) return by_number(machine, *number);
  if (is_number_or_pair(id)) return by_number(machine, id);
  if (id.starts_with("MIG-GPU-")) return by_old_mig_name(machine, id);
  if (const auto found = by_uuid(machine, id)) return *found;
  if (const auto address = model::PciAddress::parse(id)) {
    for (const auto& gpu : machine.gpus) {
      if (gpu.pci == *address) return SelectedDevice{&gpu, nullptr};
    }
  }
  return device_not_found(machine, quoted(id));
}

std::string loss(const Gpu& gpu) {
  return fmt::format("GPU {} ({}) is lost{}", gpu.index, gpu.uuid.text,
                     gpu.health.reasons.empty() ? "" : ": " + gpu.health.reasons.front());
}

bool is_lost(const Gpu& gpu) {
  return gpu.health.state == model::HealthState::Lost;
}

Result<Selection> select_all(const Inventory& machine) {
  Selection all;
  for (const auto& gpu : machine.gpus) {
    if (is_lost(gpu)) {
      all.notes.push_back(loss(gpu) + "; it is left out of `all`");
      continue;
    }
    for (const auto& mig : gpu.mig.instances) all.devices.push_back({&gpu, &mig});
    if (!gpu.mig.instances.empty()) continue;
    if (gpu.mig.current != model::MigMode::Enabled) {
      all.devices.push_back({&gpu, nullptr});
    } else {
      all.notes.push_back(
          fmt::format("GPU {} is in MIG mode and has no instances: CUDA cannot use it, and it is "
                      "left out of `all`; create some: nvidia-smi mig -i {} -cgi PROFILE -C",
                      gpu.index, gpu.index));
    }
  }
  if (all.devices.empty()) {
    return Error(Errc::NotFound, fmt::format("this machine has no GPU that a container can use{}{}",
                                             all.notes.empty() ? "" : ": ",
                                             all.notes.empty() ? "" : all.notes.front()))
        .advise("run `gantry doctor`");
  }
  return all;
}

}  // namespace

std::string describe_devices(const Inventory& machine) {
  std::string text;
  std::size_t count = 0;
  const auto add = [&](std::string_view name, std::string_view uuid) {
    if (++count <= kMaxDevicesInMessage)
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", name, uuid);
  };
  for (const auto& gpu : machine.gpus) {
    add(fmt::to_string(gpu.index), gpu.uuid.text);
    for (const auto& mig : gpu.mig.instances)
      add(fmt::format("{}:{}", gpu.index, mig.index), mig.uuid.text);
  }
  if (count > kMaxDevicesInMessage)
    text += fmt::format(" and {} more: `gantry info`", count - kMaxDevicesInMessage);
  return text.empty() ? "no GPU that uses the nvidia driver: `gantry doctor`" : text;
}

Result<SelectedDevice> select_one(const Inventory& machine, std::string_view id) {
  GANTRY_TRY(const SelectedDevice found, find(machine, id));
  if (is_lost(*found.gpu)) {
    return Error(Errc::Unsupported, loss(*found.gpu)).advise("run `gantry doctor` for the remedy");
  }
  return found;
}

Result<Selection> select(const Inventory& machine, std::span<const std::string> asked) {
  if (asked.size() > kMaxRequestedDevices) {
    return Error(Errc::Invalid, fmt::format("{} devices were requested; the limit is {}",
                                            asked.size(), kMaxRequestedDevices));
  }
  for (const auto& id : asked) {
    if (id == "all") return select_all(machine);
    if (id == "none") return Selection{.none = true};
  }
  Selection selection;
  for (const auto& id : asked) {
    GANTRY_TRY(const SelectedDevice one, select_one(machine, id));
    if (std::find(selection.devices.begin(), selection.devices.end(), one) ==
        selection.devices.end()) {
      selection.devices.push_back(one);
    }
    if (one.mig == nullptr && one.gpu->mig.current == model::MigMode::Enabled) {
      selection.notes.push_back(
          fmt::format("GPU {} is in MIG mode and was requested as a whole: the container gets all "
                      "its instances",
                      one.gpu->index));
    }
  }
  const auto key = [](const SelectedDevice& s) {
    return std::pair(s.gpu->index, s.mig == nullptr ? -1 : s.mig->index);
  };
  std::sort(selection.devices.begin(), selection.devices.end(),
            [&](const SelectedDevice& a, const SelectedDevice& b) { return key(a) < key(b); });
  return selection;
}

}  // namespace gantry::plan
