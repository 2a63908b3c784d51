// SPDX-License-Identifier: Apache-2.0
// The owner of each GPU, and the holders of GPUs that the kubelet does not know: a plain value and
// its text form.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/advertised.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::ownership {

enum class Owner : std::uint8_t { Plugin, Dra, Vm };
std::string_view to_string(Owner owner);  // "plugin", "dra", "vm"

struct GpuOwnership {
  model::GpuUuid gpu;
  Owner owner = Owner::Plugin;
  model::AllocationMode use = model::AllocationMode::Whole;
  bool operator==(const GpuOwnership&) const = default;
};

// A holder that the kubelet does not know: a prepared claim, a virtual machine.
struct Claim {
  std::string id;  // the claim's UID, the machine's UUID
  Owner owner = Owner::Dra;
  model::GpuUuid gpu;
  model::GpuUuid mig;  // empty text: the whole GPU
  std::string what;    // for people: "claim default/train", "VM db-3"
  bool operator==(const Claim&) const = default;
};

struct OwnershipState {
  std::uint64_t sequence = 0;      // grows by one with every change
  std::vector<GpuOwnership> gpus;  // by UUID
  std::vector<Claim> claims;       // in order of creation
  bool operator==(const OwnershipState&) const = default;

  const GpuOwnership* find(const model::GpuUuid& gpu) const;
};

inline constexpr std::size_t kMaxOwnedGpus = 512;
inline constexpr std::size_t kMaxClaims = 4096;
inline constexpr std::size_t kMaxNameLength = 256;

std::string to_json(const OwnershipState& state);  // JSON in one line
// Corrupt if it is not a valid state or exceeds the limits above. Unknown fields are ignored, so
// that an older version can read the file of a newer one.
Result<OwnershipState> parse_state(std::string_view text);

// One record: a line "LENGTH CHECKSUM STATE\n". Each record holds the whole state, so a damaged
// record affects no other.
std::string to_record(const OwnershipState& state);

struct ReplayResult {
  OwnershipState state;  // of the last complete record
  bool any = false;      // there was a complete record
  bool damaged = false;  // there was also something else
};
ReplayResult replay_records(std::string_view file);

}  // namespace gantry::ownership
