// SPDX-License-Identifier: Apache-2.0
// What Gantry is about to do to the drivers of some PCI functions, written below /run/gantry/vfio
// before each step. A program that finds the journal of one that was killed can go on or take back.
// /run is empty after a reboot, and so are the kernel's driver overrides.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"
#include "vm/pci/function.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::vfio {

inline constexpr std::string_view kStateDirectory = "/run/gantry/vfio";

// In place of a driver's name: the kernel chooses the driver.
inline constexpr std::string_view kAnyDriver = "*";

// Modules that no PCI function makes the kernel load again when nvidia.ko comes back.
inline constexpr std::array<std::string_view, 2> kCompanionModules{"nvidia_uvm", "nvidia_modeset"};

// One function goes from one driver to another. "" means no driver, or no override.
struct FunctionMove {
  model::PciAddress address;
  model::PciAddress target;  // the GPU or NVSwitch that it belongs to
  pci::CardId id;
  std::string from_driver, from_override;
  std::string to_driver, to_override;
  std::string power;  // power/control before bind: "auto", "on"; "" if unknown
  bool operator==(const FunctionMove&) const = default;
};

// A GPU or NVSwitch whose driver the kernel chooses.
inline bool is_left_to_kernel(const FunctionMove& move) {
  return move.to_driver == kAnyDriver && move.address == move.target;
}

struct Journal {
  std::string kind;  // "bind" or "release"
  std::vector<model::PciAddress> targets;
  std::vector<FunctionMove> moves;  // the GPU after its sound and USB functions
  std::vector<std::string> modules;
  std::vector<std::string> companions;         // of nvidia.ko, loaded before bind: nvidia_uvm
  std::vector<std::string> services;           // stopped meanwhile
  std::vector<model::PciAddress> persistence;  // bind: persistence mode is switched off;
                                               // release: it is switched on again
  std::vector<std::string> nodes;              // must have no holder when the driver goes
  std::size_t step = 0;                        // begun, and perhaps done
  bool backwards = false;                      // all steps up to `step` are being undone
  std::vector<model::PciAddress> stuck;        // a write to these never returned
  bool operator==(const Journal&) const = default;
};

std::string to_json(const Journal& journal);
// Corrupt if it is not a journal. Bounded; accepts any bytes.
Result<Journal> parse_journal(std::string text);

// "/run/gantry/vfio/0000:3b:00.0.journal", named after the first target.
std::string journal_path(const Journal& journal);
// The record of a bound GPU: the way back. It is a journal of kind "bind" with one target.
std::string bound_path(const model::PciAddress& target);

// All journals of work that did not end, and all records of bound GPUs, by address. A file that
// cannot be read is Corrupt, with a remedy: the state of the functions must not be guessed.
Result<std::vector<Journal>> read_journals(const sys::Host& host);
Result<std::vector<Journal>> read_bound(const sys::Host& host);
// The record of one GPU; nullopt if it has none.
Result<std::optional<Journal>> read_bound(const sys::Host& host, const model::PciAddress& target);

// Held while drivers change. Busy if another process has it.
Result<sys::UniqueFd> lock_state(const sys::Host& host);

}  // namespace gantry::vfio
