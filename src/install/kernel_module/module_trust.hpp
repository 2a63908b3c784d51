// SPDX-License-Identifier: Apache-2.0
// Which modules the kernel accepts: secure boot, lockdown, enforced signatures, trusted keys.
#pragma once

#include "base/sys/host.hpp"
#include "install/kernel_module/module_file.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::kernel_module {

// A certificate of the machine's owner (MOK), which shim hands to the kernel.
struct EnrolledCertificate {
  std::string issuer;
  std::string subject;
  std::string serial;  // hexadecimal, as in ModuleFile::signature_serial
  bool operator==(const EnrolledCertificate&) const = default;
};

struct ModuleTrust {
  enum class SecureBoot : std::uint8_t { Off, On, Unknown };
  enum class Lockdown : std::uint8_t { None, Integrity, Confidentiality, Unknown };

  SecureBoot secure_boot = SecureBoot::Unknown;
  // shim does not check what it starts (MokSBState): the firmware's secure boot is on, and the
  // kernel behaves as if it was off.
  bool validation_disabled = false;
  Lockdown lockdown = Lockdown::Unknown;
  bool signatures_enforced = false;  // module.sig_enforce, or the kernel was built so
  // Descriptions of the keys in the kernel's keyrings: "Debian Secure Boot CA: 6ccece7e4c6c...".
  // Empty if they cannot be read.
  std::vector<std::string> trusted_keys;
  std::vector<EnrolledCertificate> enrolled;
  bool operator==(const ModuleTrust&) const = default;
};

std::string_view to_string(ModuleTrust::SecureBoot state);  // "off", "on", "unknown"
std::string_view to_string(ModuleTrust::Lockdown mode);     // "none", "integrity", ...

// Returns true if this kernel refuses modules that are not signed.
bool refuses_unsigned(const ModuleTrust& trust);

ModuleTrust read_module_trust(const sys::Host& host);

// /proc/keys: descriptions of the asymmetric keys, without the type of the key.
std::vector<std::string> parse_trusted_keys(std::string_view proc_keys);
// Lists of certificates as UEFI has them in MokListRT. Skips what is not an X.509 certificate.
std::vector<EnrolledCertificate> parse_mok_list(std::string_view lists);
// "[none] integrity confidentiality"
ModuleTrust::Lockdown parse_lockdown(std::string_view text);

// Why the kernel will refuse the module, as a sentence without its full stop; nullopt if no reason
// is known. A signature itself is not verified: only the kernel can do that.
std::optional<std::string> reason_refused(const ModuleFile& file, const ModuleTrust& trust);

// What helps against reason_refused: to enrol a key, to use the distribution's signed packages, or
// to sign centrally.
std::string remedy_refused(const ModuleFile& file, const ModuleTrust& trust);

}  // namespace gantry::kernel_module
