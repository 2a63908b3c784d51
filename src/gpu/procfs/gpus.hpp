// SPDX-License-Identifier: Apache-2.0
// The GPUs of /proc/driver/nvidia/gpus. The probe and the container runtime both read them with
// this module, so that a GPU has the same index, UUID and minor in both.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/inventory.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::procfs {

// One "information" file. Values that the driver has not read from the card yet
// ("GPU-????????-...",
// "??.??.??", "Unknown") are empty.
struct InformationFile {
  model::Gpu gpu;  // name, uuid, minor, vbios, gsp_firmware
  bool excluded = false;
  std::string_view exclusion_line;  // "GPU Excluded" or "Blacklisted"; "" if the file has neither
  std::vector<std::string_view> missing;  // lines that every driver writes and that this file lacks
};
// Accepts any bytes. If a line occurs twice, the second one counts.
InformationFile parse_information_file(std::string_view text);

struct GpuEntry {
  std::string path;             // of the information file
  InformationFile information;  // with gpu.pci; without values if the file cannot be read
  std::string read_error;       // "" if the file was read
  bool silent = false;          // the driver did not answer in time
};

// An open of one GPU takes seconds where no process keeps the driver's state.
inline constexpr std::chrono::seconds kAnswerDeadline{10};

// All GPUs of the driver by PCI address, also excluded ones. Directories whose names are not PCI
// addresses are skipped. NotFound if the driver is not loaded; Corrupt if there are more
// directories than a driver can have GPUs.
// For each file the driver takes a lock that an open of any GPU holds until it ends, and a reader
// that waits for it cannot be killed. So one child reads all of them, and after the first file that
// was not read in time, the others are not tried. The child costs less than a millisecond; where
// that is too much, as in the usual start of a container, use the inventory file instead.
Result<std::vector<GpuEntry>> read_gpus(const sys::Host& host,
                                        std::chrono::milliseconds deadline = kAnswerDeadline);

// One of them. NotFound if the driver does not have the GPU; Timeout if it did not answer, because
// then nothing is known about the GPU.
Result<InformationFile> read_gpu(const sys::Host& host, const model::PciAddress& gpu,
                                 std::chrono::milliseconds deadline = kAnswerDeadline);

}  // namespace gantry::procfs
