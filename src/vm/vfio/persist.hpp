// SPDX-License-Identifier: Apache-2.0
// GPUs that stay with virtual machines over a reboot. /etc/gantry/vfio.json names them by PCI
// address and card; an early unit binds them before any other driver is loaded. `vfio-pci.ids=` on
// the kernel's command line is not used: it takes every card of that type, also the twin.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "vm/pci/function.hpp"
#include "vm/vfio/effects.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::vfio {

inline constexpr std::string_view kPersistPath = "/etc/gantry/vfio.json";
inline constexpr std::string_view kUnitName = "gantry-vfio.service";

struct PersistedCard {
  model::PciAddress address;
  pci::CardId id;
  bool operator==(const PersistedCard&) const = default;
};

struct PersistedState {
  std::vector<PersistedCard> cards;  // by address
  // Directories and files that did not exist before, in the order in which they were created. They
  // are removed with the last card.
  std::vector<std::string> created;
  bool operator==(const PersistedState&) const = default;
};

std::string to_json(const PersistedState& state);
Result<PersistedState> parse_persisted(std::string text);
Result<PersistedState> read_persisted(const sys::Host& host);  // empty if there is no file

// Whether persist() can work, to be asked before the drivers change. Unsupported if the machine
// does not use systemd, Corrupt if the list of cards cannot be understood.
Status check_persist(const sys::Host& host, const std::string& program);

// Adds the cards in these slots. `program` is the path of gantry for the unit. Notes say what
// to know about the cards.
Result<std::vector<std::string>> persist(const sys::Host& host,
                                         const std::vector<model::PciAddress>& targets,
                                         const std::string& program, const Effects& effects);

// Removes the cards; with the last one, everything that persist created. Does nothing for cards
// that are not persisted. Returns true if something was removed.
Result<bool> forget(const sys::Host& host, const std::vector<model::PciAddress>& targets,
                    const Effects& effects);

// Returns Denied if the slot of a persisted card holds another card, NotFound if it is empty.
Status check_persisted(const sys::Host& host, const PersistedCard& card);

std::string unit_text(const std::string& program);

}  // namespace gantry::vfio
