// SPDX-License-Identifier: Apache-2.0
// Who owns each GPU, and who holds one without the kubelet's knowledge: a plain value and its text.
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
  std::vector<Claim> claims;       // in the order they were made
  bool operator==(const OwnershipState&) const = default;

  const GpuOwnership* find(const model::GpuUuid& gpu) const;
};

inline constexpr std::size_t kMaxOwnedGpus = 512;
inline constexpr std::size_t kMaxClaims = 4096;
inline constexpr std::size_t kMaxNameLength = 256;

std::string to_json(const OwnershipState& state);  // JSON in one line
// Corrupt for what is no state, or has more than the limits above; fields nobody knows are passed
// over, so that a former version can read what a later one wrote.
Result<OwnershipState> parse_state(std::string_view text);

// One record: a line "LENGTH CHECKSUM STATE\n". Each holds the whole state, so that a damaged one
// takes nothing with it but itself.
std::string to_record(const OwnershipState& state);

struct ReplayResult {
  OwnershipState state;  // of the last whole record
  bool any = false;      // there was one
  bool damaged = false;  // there was something else, too
};
ReplayResult replay_records(std::string_view file);

}  // namespace gantry::ownership
