// SPDX-License-Identifier: Apache-2.0
#include "vm/pci/read_bus.hpp"
#include "vm/vfio/journal.hpp"
#include "vm/vfio/machine_state.hpp"
#include "vm/vfio/persist.hpp"
#include "vm/vfio/variant_driver.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

// Any bytes give a value or an error, and what was accepted reads back unchanged.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)gantry::pci::find_serial(text);
  (void)gantry::vfio::choose_vfio_module(gantry::vfio::parse_vfio_aliases(text),
                                         "pci:v000010DEd00002342sv000010DEsd00000001bc03sc02i00");
  (void)gantry::vfio::parse_interrupts(text);
  (void)gantry::vfio::find_disabling_parameter(text);
  if (const auto journal = gantry::vfio::parse_journal(text); journal.ok()) {
    const auto again = gantry::vfio::parse_journal(gantry::vfio::to_json(*journal));
    if (!again.ok() || *again != *journal) std::abort();
  }
  if (const auto state = gantry::vfio::parse_persisted(text); state.ok()) {
    const auto again = gantry::vfio::parse_persisted(gantry::vfio::to_json(*state));
    if (!again.ok() || *again != *state) std::abort();
  }
  return 0;
}
