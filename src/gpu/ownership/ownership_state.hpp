// SPDX-License-Identifier: Apache-2.0
// The owner of each GPU, the holders of GPUs that the kubelet does not know, and the changes of
// owners that have begun: a plain value and its text form. A GPU is known by its PCI address. Its
// UUID is an alias that may be unknown: a card that was bound to vfio-pci at boot, a virtual
// function and an NVSwitch show none.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/advertised.hpp"
#include "gpu/model/pci_address.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::ownership {

enum class Owner : std::uint8_t { Plugin, Dra, Vm };
std::string_view to_string(Owner owner);  // "plugin", "dra", "vm"

struct GpuOwnership {
  model::PciAddress gpu;
  model::GpuUuid uuid;  // empty text: not known
  Owner owner = Owner::Plugin;
  model::AllocationMode use = model::AllocationMode::Whole;
  bool operator==(const GpuOwnership&) const = default;
};

// A holder that the kubelet does not know: a prepared claim, a virtual machine.
struct Claim {
  std::string id;  // the claim's UID, the machine's UUID
  Owner owner = Owner::Dra;
  model::PciAddress gpu;
  // The part of the GPU: the address of a virtual function, the UUID of a mediated device or of a
  // MIG instance. "": the whole GPU.
  std::string part;
  std::string what;  // for people: "claim default/train", "VM db-3"
  bool operator==(const Claim&) const = default;
};

// A change of the owner that has begun and has not ended. It is on disk before the first act.
struct OwnerIntent {
  model::PciAddress gpu;
  Owner to = Owner::Plugin;
  model::AllocationMode use = model::AllocationMode::Whole;
  std::string what;       // the command, as it can be typed again: "gantry vfio bind 0000:3b:00.0"
  std::uint32_t pid = 0;  // of the process that began it, for people
  std::int64_t since_unix_seconds = 0;
  // UUIDs of the MIG instances that it does not touch: they stay offered, and may stay in use.
  std::vector<std::string> kept = {};
  // It replaced one that was not finished, so the GPU was in between when it began. Set by begin().
  bool resumes = false;
  bool operator==(const OwnerIntent&) const = default;
};
// The same change of the same process. Not compared: `resumes`, which only the ledger knows, and
// `kept`, which an agent of an earlier version does not write.
bool is_same_change(const OwnerIntent& a, const OwnerIntent& b);

// A GPU of which only the UUID is known: from a file of the first version, or displaced by another
// card. It gets its address back when a GPU with this UUID is seen.
struct UnplacedGpu {
  model::GpuUuid uuid;
  Owner owner = Owner::Plugin;
  model::AllocationMode use = model::AllocationMode::Whole;
  std::vector<Claim> claims;  // without the address
  bool operator==(const UnplacedGpu&) const = default;
};

struct OwnershipState {
  std::uint64_t sequence = 0;      // grows by one with every change
  std::vector<GpuOwnership> gpus;  // by address
  std::vector<Claim> claims;       // in order of creation
  std::vector<OwnerIntent> intents;
  std::vector<UnplacedGpu> unplaced;
  bool operator==(const OwnershipState&) const = default;

  const GpuOwnership* find(const model::PciAddress& gpu) const;
  const GpuOwnership* find(const model::GpuUuid& uuid) const;  // nullptr for an empty UUID
  const OwnerIntent* intent(const model::PciAddress& gpu) const;
  const UnplacedGpu* find_unplaced(const model::GpuUuid& uuid) const;
};

// Says that this GPU has this UUID. If the UUID was known at another address, the card has moved,
// and its owner moves with it. A different card that was known at this address is displaced: it
// becomes unplaced, or is forgotten if it was the plugin's and nothing holds it. Returns false if
// nothing changed.
bool identify(OwnershipState& state, const model::PciAddress& gpu, const model::GpuUuid& uuid);

inline constexpr std::size_t kMaxOwnedGpus = 512;
inline constexpr std::size_t kMaxClaims = 4096;
inline constexpr std::size_t kMaxNameLength = 256;
inline constexpr std::size_t kMaxKeptParts = 64;  // of one GPU

// Version 1 had UUIDs instead of addresses, and no number. An agent of that version finds no valid
// record in a file of this version and refuses to start its offer.
inline constexpr std::uint64_t kStateVersion = 2;

std::string to_json(const OwnershipState& state);  // JSON in one line
// Reads this version and version 1, whose GPUs are all unplaced. Unsupported if it is of a later
// version; Corrupt if it is not a valid state or exceeds the limits above. Unknown fields are
// ignored.
Result<OwnershipState> parse_state(std::string_view text);

// One record: a line "LENGTH CHECKSUM STATE\n". Each record holds the whole state, so a damaged
// record affects no other.
std::string to_record(const OwnershipState& state);

struct ReplayResult {
  OwnershipState state;  // of the last complete record
  bool any = false;      // there was a complete record
  bool damaged = false;  // there was also something else
  bool former = false;   // the last complete record is of an earlier version
  bool later = false;    // a complete record is of a later version: nothing here may be used
};
ReplayResult replay_records(std::string_view file);

}  // namespace gantry::ownership
