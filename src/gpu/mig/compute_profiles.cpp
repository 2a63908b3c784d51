// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/compute_profiles.hpp"

#include "gpu/mig/profile_name.hpp"

#include <array>
#include <utility>

namespace gantry::mig {
namespace {

// NVML_COMPUTE_INSTANCE_PROFILE_*: the number of compute slices, and NVML's number of the profile.
constexpr std::array<std::pair<unsigned, unsigned>, 7> kNumbers{
    {{1, 0}, {2, 1}, {3, 2}, {4, 3}, {6, 6}, {7, 4}, {8, 5}}};

// A compute instance begins at a multiple of its size, of the next power of two for 3.
unsigned alignment(unsigned slices) {
  return slices == 3 ? 4 : slices;
}

// 4 compute slices cannot be divided into 3 and 1.
bool divides(unsigned whole, unsigned slices) {
  return slices < whole && slices <= 4 && !(whole == 4 && slices == 3);
}

std::vector<Placement> places_in(unsigned whole, unsigned slices) {
  std::vector<Placement> places;
  for (unsigned start = 0; start + slices <= whole; start += alignment(slices))
    places.push_back({start, slices});
  return places;
}

}  // namespace

std::vector<ComputeProfile> usual_compute_profiles(const GpuProfile& profile) {
  std::vector<ComputeProfile> found;
  const auto name = parse_profile_name(profile.name);
  if (!name.ok()) return found;
  for (const auto& [slices, number] : kNumbers) {
    if (slices != profile.slices && !divides(profile.slices, slices)) continue;
    ComputeProfile part{
        .name = to_string(name->with_compute(slices)), .id = number, .slices = slices};
    part.places = places_in(profile.slices, slices);
    part.max = static_cast<unsigned>(part.places.size());
    found.push_back(std::move(part));
  }
  return found;
}

}  // namespace gantry::mig
