// SPDX-License-Identifier: Apache-2.0
// CUDA forward compatibility: an image may contain a libcuda of a newer driver, which works on
// older kernel modules of certain branches. An ELF note of the library lists these branches.
#pragma once

#include "base/core/result.hpp"
#include "gpu/loader/elf.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::loader {

// {"format":1,"CUDA version":"12.9","driver":[535,550],"device":[1,2]} of section
// .note.cuda.fwd_compatibility; some libraries list no drivers.
struct CompatNote {
  std::string cuda_version;
  std::vector<std::uint64_t> drivers;
  bool operator==(const CompatNote&) const = default;
};

// nullopt if there is no note, Corrupt if the note cannot be parsed.
Result<std::optional<CompatNote>> read_compat_note(const Elf& library);

struct HostVersions {
  std::string driver;  // "570.86.15", "" when not known
  std::string cuda;    // "12.8", "" when not known
};

struct CompatDecision {
  bool use = false;
  std::string why;  // one sentence, for a log or `gantry explain`
  bool operator==(const CompatDecision&) const = default;
};

// `version`: the end of the library's file name, "575.57.08".
CompatDecision decide_compat(std::string_view version, const std::optional<CompatNote>& note,
                             const HostVersions& host);

// Dotted numbers; a missing part is 0. nullopt if one of them is not such a number.
std::optional<int> compare_versions(std::string_view a, std::string_view b);

}  // namespace gantry::loader
