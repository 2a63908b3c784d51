// SPDX-License-Identifier: Apache-2.0
// CUDA forward compatibility: an image may carry a libcuda of a newer driver, which works on older
// kernel modules of certain branches. Whether it does, its ELF note says; we only read it.
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
// .note.cuda.fwd_compatibility; some libraries name no drivers.
struct CompatNote {
  std::string cuda_version;
  std::vector<std::uint64_t> drivers;
  bool operator==(const CompatNote&) const = default;
};

// nullopt when there is none, Corrupt when there is one that cannot be understood.
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

// `version`: what the library's file name ends in, "575.57.08".
CompatDecision decide_compat(std::string_view version, const std::optional<CompatNote>& note,
                             const HostVersions& host);

// Dotted numbers; a missing part is 0. nullopt when a side is none.
std::optional<int> compare_versions(std::string_view a, std::string_view b);

}  // namespace gantry::loader
