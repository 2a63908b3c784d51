// SPDX-License-Identifier: Apache-2.0
// Who owns each GPU, and who holds one without the kubelet's knowledge: a plain value and its text.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/offer.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::ownership {

enum class Owner : std::uint8_t { Plugin, Dra, Vm };
std::string_view to_string(Owner owner);  // "plugin", "dra", "vm"

struct Entry {
  model::GpuUuid gpu;
  Owner owner = Owner::Plugin;
  model::Use use = model::Use::Whole;
  bool operator==(const Entry&) const = default;
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

struct State {
  std::uint64_t sequence = 0;  // grows by one with every change
  std::vector<Entry> gpus;     // by UUID
  std::vector<Claim> claims;   // in the order they were made
  bool operator==(const State&) const = default;

  const Entry* find(const model::GpuUuid& gpu) const;
};

inline constexpr std::size_t kMostGpus = 512;
inline constexpr std::size_t kMostClaims = 4096;
inline constexpr std::size_t kLongestName = 256;

std::string to_text(const State& state);  // JSON in one line
// Corrupt for what is no state, or has more than the limits above; fields nobody knows are passed
// over, so that a former version can read what a later one wrote.
Result<State> state_from(std::string_view text);

// One record: a line "LENGTH CHECKSUM STATE\n". Each holds the whole state, so that a damaged one
// takes nothing with it but itself.
std::string record_of(const State& state);

struct Replay {
  State state;           // of the last whole record
  bool any = false;      // there was one
  bool damaged = false;  // there was something else, too
};
Replay replay(std::string_view file);

}  // namespace gantry::ownership
