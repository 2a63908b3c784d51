// SPDX-License-Identifier: Apache-2.0
// Says what is missing in the configuration of a virtual machine with GPUs: why, and the line to
// add.
#pragma once

#include "base/core/result.hpp"
#include "vm/hypervisor/guest_gpu.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::hypervisor {

enum class FileKind : std::uint8_t { Qemu, Libvirt, Vmx };
std::string_view describe(FileKind kind);  // "a libvirt domain"

enum class Severity : std::uint8_t {
  Problem,  // the virtual machine does not start, or its GPU does not work
  Advice    // it works, but slower or not everywhere
};

struct Finding {
  std::string id;  // "mmio-window"
  Severity severity = Severity::Problem;
  std::string what;
  std::string why;
  std::string add;  // the line or the command; "" if there is none
  int line = 0;     // where the file says otherwise; 0 if it says nothing
  bool operator==(const Finding&) const = default;
};

struct CheckedFile {
  FileKind kind = FileKind::Qemu;
  int gpus = 0;  // whole GPUs
  int vgpus = 0;
  int unknown = 0;  // PCI functions that are not on this machine
  std::vector<Finding> findings;
};

// From the content: XML, `key = "value"` lines, or a command. nullopt for any other text.
std::optional<FileKind> file_kind(std::string_view text);

// `machine` has the GPUs of the machine that the file is for, as far as they are known, with their
// vGPUs. Cards in a .vmx are known by their device id.
Result<CheckedFile> check_config(std::string_view text, std::span<const GuestGpu> machine);

}  // namespace gantry::hypervisor
