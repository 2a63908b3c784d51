// SPDX-License-Identifier: Apache-2.0
// Names of MIG profiles: "3g.71gb" (a GPU instance with 3 compute slices and 71 GB), "1c.3g.71gb"
// (a compute instance with 1 slice in it), with attributes: "1g.18gb+me", "1g.24gb+me.all",
// "1g.24gb+gfx", "1g.24gb-me". The same texts are accepted as by NVIDIA's mig-parted.
#pragma once

#include "base/core/result.hpp"

#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::mig {

inline constexpr std::size_t kMaxProfileNameBytes = 64;

struct ProfileName {
  unsigned compute_slices = 0;  // of the compute instance
  unsigned gpu_slices = 0;      // compute slices of the GPU instance around it
  unsigned memory_gb = 0;
  std::vector<std::string> with = {};     // "me", "me.all", "gfx"; sorted
  std::vector<std::string> without = {};  // "me" of "1g.24gb-me"; sorted

  // Whether the compute instance takes its whole GPU instance. "3c.3g.71gb" is "3g.71gb".
  bool whole() const { return compute_slices == gpu_slices; }
  // The name of the GPU instance: "3g.71gb" of "1c.3g.71gb".
  ProfileName gpu_instance() const;
  // The name of a compute instance with so many slices in the same GPU instance.
  ProfileName with_compute(unsigned slices) const;

  auto operator<=>(const ProfileName&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Invalid if the text is not the name of a profile. It may be a name that no GPU offers.
Result<ProfileName> parse_profile_name(std::string_view text);

std::string to_string(const ProfileName& name);

// As in resource names and in the names of configurations: "1g.18gb.me" for "1g.18gb+me".
std::string to_resource_form(const ProfileName& name);
Result<ProfileName> parse_resource_form(std::string_view text);

}  // namespace gantry::mig
