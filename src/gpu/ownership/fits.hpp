// SPDX-License-Identifier: Apache-2.0
// One rule for who may have a GPU or a part of it: for Allocate, shares, slots of pods, claims, MIG
// instances and virtual machines. A function of values: the caller collects the holdings.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/advertised.hpp"
#include "gpu/ownership/ownership_state.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gantry::ownership {

struct Card {
  std::string name;  // for people: its PCI address or UUID
  Owner owner = Owner::Plugin;
  model::AllocationMode use = model::AllocationMode::Whole;
  std::uint64_t memory_bytes = 0;  // 0: not known, and not checked
  bool changing = false;           // a change of its owner has begun
};

// What one holder has of a card. For GPUs of the plugin, leave out holders that an Allocate of the
// same device proves to be gone.
struct Holding {
  std::string holder;  // "pod default/train", "VM db-3"
  model::AllocationMode mode = model::AllocationMode::Whole;
  std::string part;                // as in Claim; "": the whole card, or an amount of it
  std::uint64_t memory_bytes = 0;  // 0: none is allocated
  std::uint32_t percent = 0;       // of the card's time; 0: none is allocated
  bool alone = false;              // no other holder may be beside it
  bool operator==(const Holding&) const = default;

  // No other holder may have any part of the card.
  bool exclusive() const;
};

struct HoldingRequest {
  Owner owner = Owner::Plugin;  // through which face it is asked for
  // Replaces the holding of the same holder on the same part.
  Holding holding;
  bool overcommit = false;  // the sums of memory and time may exceed the card
};

struct CardRefusal {
  enum class Reason : std::uint8_t {
    Changing,  // the owner of the card is being changed
    Owner,     // it belongs to another owner
    Use,       // it is used in another way: whole, in shares, ...
    TooBig,    // more memory than the card has
    Memory,    // more memory than is left
    Held,      // another holder has it, or this part of it
    Time       // more than 100 % of its time
  };
  Reason reason = Reason::Changing;
  std::vector<std::string> holders;  // who is in the way
  std::uint64_t sum = 0;             // of memory or time, with what is wanted
  std::uint64_t capacity = 0;
  bool operator==(const CardRefusal&) const = default;
};

// Every reason why the card cannot be had, in the order of the enumerators; empty if it fits. A
// holding that takes no more memory or time than the one that it replaces is not refused for
// memory or time, so that on an overcommitted card holdings can be made smaller.
std::vector<CardRefusal> fits(const Card& card, std::span<const Holding> holdings,
                              const HoldingRequest& wanted);

// The sentence for a refusal. Denied for another owner, Invalid for TooBig, Busy for the others.
Error to_error(const CardRefusal& refusal, const Card& card, const HoldingRequest& wanted);
// fits() as a Status, with the first refusal.
Status check_fits(const Card& card, std::span<const Holding> holdings,
                  const HoldingRequest& wanted);

}  // namespace gantry::ownership
