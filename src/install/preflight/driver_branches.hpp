// SPDX-License-Identifier: Apache-2.0
// Which branches of NVIDIA's driver drive which generation of GPUs, and with which of its two
// kernel modules. Pure tables.
#pragma once

#include "base/core/result.hpp"

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::preflight {

// The kernel module that NVIDIA publishes as source, and the one with a binary part.
enum class Flavour : std::uint8_t { Open, Proprietary };
std::string_view to_string(Flavour flavour);  // "open", "proprietary"
std::optional<Flavour> parse_flavour(std::string_view text);

// In the order in which they appeared.
enum class Architecture : std::uint8_t {
  Unknown,
  Fermi,
  Kepler,
  Maxwell,
  Pascal,
  Volta,
  Turing,
  Ampere,
  Ada,
  Hopper,
  GraceHopper,  // Hopper on one module with a Grace processor
  Blackwell
};
std::string_view to_string(Architecture architecture);  // "Kepler"; "" for Unknown

// From the device id of a PCI function of NVIDIA's. Unknown if the table has no such chip.
Architecture architecture_of_device(std::uint16_t device);
// From the name that NVML or `to_string` gives: "Kepler", "Ada Lovelace".
Architecture architecture_by_name(std::string_view name);

// "580.159.04", "430.26"; a branch alone is "580".
struct DriverVersion {
  unsigned branch = 0;
  unsigned minor = 0;
  unsigned patch = 0;
  bool is_branch_only = false;
  auto operator<=>(const DriverVersion&) const = default;  // NOLINT(modernize-use-nullptr)

  static std::optional<DriverVersion> parse(std::string_view text);
};

// What drives one generation. An end of 0: there is none yet.
struct BranchRange {
  unsigned first = 0;       // the first branch that knows the generation
  unsigned last = 0;        // the last branch that does; 0: none of them dropped it
  unsigned first_open = 0;  // the first with a usable open module; 0: never
  bool needs_open = false;  // the proprietary module does not drive it
};
BranchRange branches_of(Architecture architecture);

// Why this branch cannot drive this generation, one sentence; nullopt if it can or if the
// generation is unknown.
std::optional<std::string> reason_unsupported(Architecture architecture, unsigned branch);
std::optional<std::string> reason_unsupported(Architecture architecture, unsigned branch,
                                              Flavour flavour);

// The branches that drive all of these GPUs, [first, last]; nullopt if no branch does. A last of 0
// has no end.
std::optional<BranchRange> common_branches(std::span<const Architecture> architectures);

// The flavour to install: the wanted one if every GPU works with it; without a wish what NVIDIA's
// installer chooses, open from 560 on. Unsupported, with the way out, if no flavour suits.
Result<Flavour> choose_flavour(std::span<const Architecture> architectures, unsigned branch,
                               std::optional<Flavour> wanted);

}  // namespace gantry::preflight
