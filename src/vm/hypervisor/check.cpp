// SPDX-License-Identifier: Apache-2.0
#include "vm/hypervisor/check.hpp"

#include "base/core/text.hpp"
#include "vm/hypervisor/checks_internal.hpp"

#include <fmt/format.h>

namespace gantry::hypervisor {
namespace {

// `key = "value"`: the form of nearly every line of a .vmx, and of no command.
bool is_vmx_line(std::string_view line) {
  const auto equals = line.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  const auto key = trim(line.substr(0, equals));
  return !key.empty() && key.find_first_of(" \t'\"$") == std::string_view::npos &&
         !key.starts_with('-') && trim(line.substr(equals + 1)).starts_with('"');
}

// Proxmox starts QEMU as /usr/bin/kvm, in `qm showcmd` and in /proc/PID/cmdline.
bool calls_kvm(std::string_view text) {
  const auto word = text.substr(0, text.find_first_of(std::string_view(" \t\n\0", 4)));
  return word == "kvm" || word.ends_with("/kvm");
}

}  // namespace

std::string_view describe(FileKind kind) {
  switch (kind) {
    case FileKind::Qemu: return "a QEMU command line";
    case FileKind::Libvirt: return "a libvirt domain";
    case FileKind::Vmx: return "a VMware .vmx file";
  }
  return "";
}

std::optional<FileKind> file_kind(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (trim(text).starts_with('<')) return FileKind::Libvirt;
  if (contains(text, "qemu-system-") || contains(text, "qemu-kvm") || calls_kvm(trim(text)))
    return FileKind::Qemu;
  for (const auto line : lines(text.substr(0, 65536))) {
    if (is_vmx_line(trim(line))) return FileKind::Vmx;
  }
  return std::nullopt;
}

Finding mixed_finding(int line) {
  return {.id = "mixed",
          .severity = Severity::Problem,
          .what = "the file has a whole GPU and a vGPU",
          .why =
              "the guest has one NVIDIA driver, and the driver for vGPUs is another one than the "
              "driver for whole GPUs; one of the two does not start",
          .add = "remove one of them, or make two virtual machines",
          .line = line};
}

Result<CheckedFile> check_config(std::string_view text, std::span<const GuestGpu> machine) {
  const auto kind = file_kind(text);
  if (!kind) {
    return Error(Errc::Invalid,
                 "this is neither a libvirt domain (XML), a QEMU command line nor a VMware .vmx "
                 "file");
  }
  CheckedFile checked;
  if (*kind == FileKind::Vmx) {
    GANTRY_TRY(const auto file, VmxFile::parse(text));
    checked = check_vmx(file);
  } else if (*kind == FileKind::Libvirt) {
    GANTRY_TRY(const auto vm, describe_domain(text));
    checked = check_description(vm, machine);
  } else {
    GANTRY_TRY(const auto vm, describe_qemu(text));
    checked = check_description(vm, machine);
  }
  checked.kind = *kind;
  return checked;
}

}  // namespace gantry::hypervisor
