// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/driver_branches.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::preflight {
namespace {

using enum Architecture;

struct DeviceRange {
  std::uint16_t first;
  std::uint16_t last;
  Architecture architecture;
};

// Compared with the list of PCI ids of August 2026. Older chips that lie between these, such as the
// GT218, are left out where the list names them.
constexpr std::array kDevices{
    DeviceRange{0x06C0, 0x06DF, Fermi},     DeviceRange{0x0DC0, 0x0E3F, Fermi},
    DeviceRange{0x0EE0, 0x0F3F, Fermi},     DeviceRange{0x0FC0, 0x103F, Kepler},
    DeviceRange{0x1040, 0x10BF, Fermi},     DeviceRange{0x1140, 0x117F, Fermi},
    DeviceRange{0x1180, 0x11FF, Kepler},    DeviceRange{0x1200, 0x127F, Fermi},
    DeviceRange{0x1280, 0x133F, Kepler},    DeviceRange{0x1340, 0x15BF, Maxwell},
    DeviceRange{0x15C0, 0x15FF, Pascal},    DeviceRange{0x1600, 0x171F, Maxwell},
    DeviceRange{0x1720, 0x173F, Pascal},    DeviceRange{0x1740, 0x17FF, Maxwell},
    DeviceRange{0x1B00, 0x1D7F, Pascal},    DeviceRange{0x1D80, 0x1DFF, Volta},
    DeviceRange{0x1E00, 0x1FFF, Turing},    DeviceRange{0x2080, 0x20FF, Ampere},
    DeviceRange{0x2180, 0x21FF, Turing},    DeviceRange{0x2200, 0x227F, Ampere},
    DeviceRange{0x2300, 0x2341, Hopper},    DeviceRange{0x2342, 0x234F, GraceHopper},
    DeviceRange{0x2350, 0x23FF, Hopper},    DeviceRange{0x2400, 0x25FF, Ampere},
    DeviceRange{0x2680, 0x28FF, Ada},       DeviceRange{0x2900, 0x2F7F, Blackwell},
    DeviceRange{0x3180, 0x33FF, Blackwell},
};

struct Row {
  Architecture architecture;
  std::string_view name;
  BranchRange range;
};

// The ends are those of NVIDIA's list of legacy GPUs. The first branches come from release notes as
// people remember them and were not verified, with two exceptions: Blackwell, and open modules from
// 515 on. A first branch that is too low here only means that the refusal comes from the driver.
constexpr std::array kRows{
    Row{Fermi, "Fermi", {.first = 256, .last = 390}},
    Row{Kepler, "Kepler", {.first = 304, .last = 470}},
    Row{Maxwell, "Maxwell", {.first = 334, .last = 580}},
    Row{Pascal, "Pascal", {.first = 367, .last = 580}},
    Row{Volta, "Volta", {.first = 375, .last = 580}},
    Row{Turing, "Turing", {.first = 410, .first_open = 515}},
    Row{Ampere, "Ampere", {.first = 450, .first_open = 515}},
    Row{Ada, "Ada", {.first = 520, .first_open = 520}},
    Row{Hopper, "Hopper", {.first = 515, .first_open = 515}},
    Row{GraceHopper, "Grace Hopper", {.first = 525, .first_open = 525, .needs_open = true}},
    Row{Blackwell, "Blackwell", {.first = 570, .first_open = 570, .needs_open = true}},
};

// NVIDIA's own installer takes the open module from this branch on, where all GPUs allow it.
constexpr unsigned kOpenByDefault = 560;

constexpr unsigned kFirstOpen = 515;  // before it there was only the proprietary module

const Row* find_row(Architecture architecture) {
  const auto found = std::find_if(kRows.begin(), kRows.end(),
                                  [&](const Row& row) { return row.architecture == architecture; });
  return found == kRows.end() ? nullptr : &*found;
}

std::string describe_range(const BranchRange& range) {
  if (range.last == 0) return fmt::format("branch {} or later", range.first);
  return fmt::format("a branch from {} to {}", range.first, range.last);
}

std::string flavours_of(const Row& row) {
  if (row.range.needs_open) return "only with the open kernel modules";
  if (row.range.first_open == 0) return "only with the proprietary kernel modules";
  return fmt::format("with the open kernel modules only from branch {} on", row.range.first_open);
}

// The first of these GPUs that excludes a flavour, for the sentence.
std::optional<std::string> first_reason(std::span<const Architecture> architectures,
                                        unsigned branch, Flavour flavour) {
  if (flavour == Flavour::Open && branch < kFirstOpen) {
    return fmt::format("branch {} has no open kernel modules; {} is the first that has", branch,
                       kFirstOpen);
  }
  for (const auto architecture : architectures) {
    if (auto reason = reason_unsupported(architecture, branch, flavour)) return reason;
  }
  return std::nullopt;
}

std::optional<unsigned> parse_part(std::string_view text) {
  constexpr unsigned kMaxVersionPart = 99999;
  const auto number = all_digits(text) ? parse_u64(text) : std::nullopt;
  if (!number || *number > kMaxVersionPart) return std::nullopt;
  return static_cast<unsigned>(*number);
}

}  // namespace

std::string_view to_string(Flavour flavour) {
  return flavour == Flavour::Open ? "open" : "proprietary";
}

std::optional<Flavour> parse_flavour(std::string_view text) {
  if (text == "open") return Flavour::Open;
  if (text == "proprietary") return Flavour::Proprietary;
  return std::nullopt;
}

std::string_view to_string(Architecture architecture) {
  const auto* row = find_row(architecture);
  return row == nullptr ? "" : row->name;
}

Architecture architecture_of_device(std::uint16_t device) {
  const auto range =
      std::find_if(kDevices.begin(), kDevices.end(), [&](const DeviceRange& candidate) {
        return device >= candidate.first && device <= candidate.last;
      });
  return range == kDevices.end() ? Unknown : range->architecture;
}

Architecture architecture_by_name(std::string_view name) {
  if (name == "Ada Lovelace") return Ada;
  const auto row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.name == name; });
  return row == kRows.end() ? Unknown : row->architecture;
}

std::optional<DriverVersion> DriverVersion::parse(std::string_view text) {
  const auto parts = split(text, '.');
  if (parts.empty() || parts.size() > 3 || text.ends_with('.')) return std::nullopt;
  std::array<unsigned, 3> numbers{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto number = parse_part(parts[i]);
    if (!number) return std::nullopt;
    numbers[i] = *number;
  }
  constexpr unsigned kFirstBranch = 100;
  constexpr unsigned kLastBranch = 9999;
  if (numbers[0] < kFirstBranch || numbers[0] > kLastBranch) return std::nullopt;
  return DriverVersion{.branch = numbers[0],
                       .minor = numbers[1],
                       .patch = numbers[2],
                       .is_branch_only = parts.size() == 1};
}

BranchRange branches_of(Architecture architecture) {
  const auto* row = find_row(architecture);
  return row == nullptr ? BranchRange{} : row->range;
}

std::optional<std::string> reason_unsupported(Architecture architecture, unsigned branch) {
  const auto* row = find_row(architecture);
  if (row == nullptr) return std::nullopt;
  const auto& range = row->range;
  if (range.last != 0 && branch > range.last) {
    return fmt::format("branch {} no longer drives {} GPUs; the last one that does is {}", branch,
                       row->name, range.last);
  }
  if (branch < range.first) {
    return fmt::format("branch {} is older than {} GPUs; they need {}", branch, row->name,
                       describe_range(range));
  }
  return std::nullopt;
}

std::optional<std::string> reason_unsupported(Architecture architecture, unsigned branch,
                                              Flavour flavour) {
  if (auto reason = reason_unsupported(architecture, branch)) return reason;
  const auto* row = find_row(architecture);
  if (row == nullptr) return std::nullopt;
  const auto& range = row->range;
  const bool fits = flavour == Flavour::Proprietary
                        ? !range.needs_open
                        : range.first_open != 0 && branch >= range.first_open;
  if (fits) return std::nullopt;
  return fmt::format("{} GPUs work {}", row->name, flavours_of(*row));
}

std::optional<BranchRange> common_branches(std::span<const Architecture> architectures) {
  BranchRange common;
  for (const auto architecture : architectures) {
    const auto range = branches_of(architecture);
    common.first = std::max(common.first, range.first);
    common.first_open = std::max(common.first_open, range.first_open);
    common.needs_open = common.needs_open || range.needs_open;
    if (range.last != 0 && (common.last == 0 || range.last < common.last)) common.last = range.last;
  }
  if (common.last != 0 && common.first > common.last) return std::nullopt;
  return common;
}

Result<Flavour> choose_flavour(std::span<const Architecture> architectures, unsigned branch,
                               std::optional<Flavour> wanted) {
  const auto open = first_reason(architectures, branch, Flavour::Open);
  const auto proprietary = first_reason(architectures, branch, Flavour::Proprietary);
  if (wanted) {
    const auto& reason = *wanted == Flavour::Open ? open : proprietary;
    const auto& other = *wanted == Flavour::Open ? proprietary : open;
    if (!reason) return *wanted;
    Error error(Errc::Unsupported, *reason);
    if (other) return error;
    return std::move(error).advise(
        fmt::format("use --flavour {}",
                    to_string(*wanted == Flavour::Open ? Flavour::Proprietary : Flavour::Open)));
  }
  if (!open && (proprietary || branch >= kOpenByDefault)) return Flavour::Open;
  if (!proprietary) return Flavour::Proprietary;
  // Both have a reason: a mixture of generations, or a branch that drives none of them.
  return *open == *proprietary
             ? Error(Errc::Unsupported, *open)
             : Error(Errc::Unsupported,
                     fmt::format("no kernel module drives all GPUs of this machine: {}; {}", *open,
                                 *proprietary))
                   .advise(
                       "take one of the GPUs out, or give it to a virtual machine: gantry "
                       "vfio bind");
}

}  // namespace gantry::preflight
