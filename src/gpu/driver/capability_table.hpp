// SPDX-License-Identifier: Apache-2.0
// Which files belong to the driver's user space, and which container capabilities need them. The
// one list: a new driver file is one new row.
#pragma once

#include "gpu/model/capabilities.hpp"
#include "gpu/model/inventory.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gantry::driver {

// How a library's file name shows that it belongs to the driver.
enum class NameRule : std::uint8_t {
  DriverVersion,  // libcuda.so.580.159.04: the driver's version and no other
  OwnVersion      // libnvidia-egl-gbm.so.1.1.2: numbered by itself
};

using model::CapabilityMask;
using model::mask_of;

struct LibraryRow {
  std::string_view stem;  // "libcuda" of libcuda.so.580.159.04
  NameRule rule;
  CapabilityMask capabilities;
  model::DriverFileKind kind = model::DriverFileKind::Library;
};

struct FileRow {
  std::string_view name;  // a program's name, or a path below /etc or a share directory
  CapabilityMask capabilities;
};

std::span<const LibraryRow> library_rows();
std::span<const FileRow> binary_rows();
std::span<const FileRow> config_rows();  // ICD and JSON files, X.org configuration
std::span<const FileRow> socket_rows();  // below /run

// nullptr when the table does not know the stem.
const LibraryRow* library_row(std::string_view stem);

// Libraries with the driver's version that are newer than the table: offered to compute and
// graphics.
inline constexpr CapabilityMask kUnknownLibraryCapabilities =
    mask_of(model::Capability::Compute) | mask_of(model::Capability::Graphics);
// Firmware is needed by whatever uses the GPU.
inline constexpr CapabilityMask kAllCapabilities =
    mask_of(model::Capability::Compute) | mask_of(model::Capability::Utility) |
    mask_of(model::Capability::Video) | mask_of(model::Capability::Graphics) |
    mask_of(model::Capability::Display) | mask_of(model::Capability::Ngx);

std::vector<model::Capability> capabilities_of(CapabilityMask mask);

// Whether a container that asks for these capabilities gets the file. Video brings what compute
// needs, display what graphics needs; a 32-bit file is given only when compat32 is asked for as
// well.
bool is_needed(const model::DriverFile& file, std::span<const model::Capability> asked);

}  // namespace gantry::driver
