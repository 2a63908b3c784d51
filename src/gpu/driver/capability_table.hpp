// SPDX-License-Identifier: Apache-2.0
// The files of the driver's user space and the container capabilities that need them. This is the
// only list: a new driver file is one new row.
#pragma once

#include "gpu/model/capabilities.hpp"
#include "gpu/model/inventory.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gantry::driver {

// How the file name of a library shows that it belongs to the driver.
enum class NameRule : std::uint8_t {
  DriverVersion,  // libcuda.so.580.159.04: exactly the driver's version
  OwnVersion      // libnvidia-egl-gbm.so.1.1.2: its own version number
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

// nullptr if the stem is not in the table.
const LibraryRow* library_row(std::string_view stem);

// Libraries with the driver's version that the table does not have yet: given to compute and
// graphics.
inline constexpr CapabilityMask kUnknownLibraryCapabilities =
    mask_of(model::Capability::Compute) | mask_of(model::Capability::Graphics);
// Everything that uses the GPU needs firmware.
inline constexpr CapabilityMask kAllCapabilities =
    mask_of(model::Capability::Compute) | mask_of(model::Capability::Utility) |
    mask_of(model::Capability::Video) | mask_of(model::Capability::Graphics) |
    mask_of(model::Capability::Display) | mask_of(model::Capability::Ngx);

std::vector<model::Capability> capabilities_of(CapabilityMask mask);

// Whether a container that requests these capabilities gets the file. Video includes compute,
// display includes graphics; a 32-bit file also needs compat32.
bool is_needed(const model::DriverFile& file, std::span<const model::Capability> asked);

}  // namespace gantry::driver
