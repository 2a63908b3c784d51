// SPDX-License-Identifier: Apache-2.0
// Kernel modules on disk: what a .ko file says about itself, and where a module's file is. A file
// may be hostile or damaged: only its section .modinfo and its end are read, with limits.
#pragma once

#include "base/sys/host.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::kernel_module {

struct ModuleFile {
  std::string name;                  // as the kernel knows it: "nvidia_uvm"
  std::string vermagic;              // "6.1.0-21-amd64 SMP preempt mod_unload modversions "
  std::string version;               // "580.159.04"; "" if the module has none
  std::string license;               // "NVIDIA" or "Dual MIT/GPL"
  std::vector<std::string> depends;  // names of modules
  bool is_signed = false;
  // Who signed it: the issuer's name as /proc/keys shows it, or the key's id in hexadecimal; "" if
  // that cannot be read.
  std::string signer;
  std::string signature_serial;  // of the signer's certificate, in hexadecimal; "" with a key id
  std::uint16_t machine = 0;     // of the ELF header: 62 is x86-64, 183 is AArch64
  bool operator==(const ModuleFile&) const = default;
};

// The bytes of a .ko file. Unsupported if they are compressed; Corrupt if they are damaged or are
// not a module.
Result<ModuleFile> parse_module(std::string_view bytes);

// The same for a file, of which only the needed parts are read.
Result<ModuleFile> read_module(const sys::Host& host, const std::string& path);

// The release that the module was built for, the first word of vermagic: "6.1.0-21-amd64". A kernel
// with modversions ("modversions" in vermagic) does not compare it: it compares checksums of the
// symbols that the module uses, so a module of another release may load.
std::string kernel_release(const ModuleFile& file);

// Path of NAME.ko, compressed or not, below /lib/modules/RELEASE; "" if there is none.
std::string find_module_file(const sys::Host& host, std::string_view release,
                             std::string_view name);

// Returns true if the file ends with a signature; nullopt if it is compressed or unreadable.
std::optional<bool> module_is_signed(const sys::Host& host, const std::string& path);

// Returns true if one kernel release is newer than the other; compares number by number.
bool newer_release(std::string_view a, std::string_view b);

// Parses a number like the kernel: 0x is hexadecimal, a leading 0 octal, everything else decimal.
std::optional<std::uint64_t> parse_option_number(std::string_view text);

}  // namespace gantry::kernel_module
