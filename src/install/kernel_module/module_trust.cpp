// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/module_trust.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::kernel_module {
namespace {

using SecureBoot = ModuleTrust::SecureBoot;
using Lockdown = ModuleTrust::Lockdown;

constexpr std::string_view kVariables = "/sys/firmware/efi/efivars";
constexpr std::string_view kSecureBoot = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
constexpr std::string_view kMokList = "MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23";
constexpr std::string_view kMokState = "MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23";
constexpr std::string_view kMokStateCopy = "/sys/firmware/efi/mok-variables/MokSBStateRT";
constexpr std::string_view kMokCopy = "/sys/firmware/efi/mok-variables/MokListRT";
constexpr std::size_t kAttributes = 4;  // before the value of a variable
constexpr std::size_t kMaxVariable = 1 << 20;
constexpr std::size_t kMaxKeys = 1024;

SecureBoot read_secure_boot(const sys::Host& host) {
  if (!host.exists("/sys/firmware")) return SecureBoot::Unknown;
  if (!host.exists("/sys/firmware/efi")) return SecureBoot::Off;  // not started by UEFI
  const auto value = host.read(fmt::format("{}/{}", kVariables, kSecureBoot), 64);
  if (value.ok() && value->size() > kAttributes)
    return (*value)[kAttributes] == 1 ? SecureBoot::On : SecureBoot::Off;
  const auto others = host.list(kVariables);
  const bool readable = others.ok() && !others->empty();
  return readable && value.error().code() == Errc::NotFound ? SecureBoot::Off : SecureBoot::Unknown;
}

// `mokutil --disable-validation`: shim hands over to anything, and the kernel behaves as without
// secure boot. The copy has no attributes before the value.
bool is_validation_disabled(const sys::Host& host) {
  const auto copy = host.read(kMokStateCopy, kAttributes);
  if (copy.ok()) return copy->size() == 1 && copy->front() == 1;
  const auto value = host.read(fmt::format("{}/{}", kVariables, kMokState), 64);
  return value.ok() && value->size() == kAttributes + 1 && (*value)[kAttributes] == 1;
}

std::vector<EnrolledCertificate> read_mok_list(const sys::Host& host) {
  // Linux 5.8 and later have a copy that the firmware's limit on sizes does not cut.
  const auto copy = host.read(kMokCopy, kMaxVariable);
  if (copy.ok()) return parse_mok_list(*copy);
  const auto variable = host.read(fmt::format("{}/{}", kVariables, kMokList), kMaxVariable);
  if (!variable.ok() || variable->size() < kAttributes) return {};
  return parse_mok_list(std::string_view(*variable).substr(kAttributes));
}

// "asymmetri Debian Secure Boot CA: 6ccece7e: X509.rsa 8b581efc []" behind seven columns.
std::optional<std::string_view> description_of(std::string_view line) {
  for (int column = 0; column < 7; ++column) {
    const auto end = line.find(' ');
    if (end == std::string_view::npos) return std::nullopt;
    line = trim(line.substr(end));
  }
  constexpr std::string_view kType = "asymmetri";
  if (!line.starts_with(kType)) return std::nullopt;
  const auto description = trim(line.substr(std::min(line.find(' '), line.size())));
  return description.substr(0, description.rfind(": X509."));
}

}  // namespace

std::string_view to_string(SecureBoot state) {
  switch (state) {
    case SecureBoot::Off: return "off";
    case SecureBoot::On: return "on";
    case SecureBoot::Unknown: break;
  }
  return "unknown";
}

std::string_view to_string(Lockdown mode) {
  switch (mode) {
    case Lockdown::None: return "none";
    case Lockdown::Integrity: return "integrity";
    case Lockdown::Confidentiality: return "confidentiality";
    case Lockdown::Unknown: break;
  }
  return "unknown";
}

Lockdown parse_lockdown(std::string_view text) {
  if (contains(text, "[none]")) return Lockdown::None;
  if (contains(text, "[integrity]")) return Lockdown::Integrity;
  if (contains(text, "[confidentiality]")) return Lockdown::Confidentiality;
  return Lockdown::Unknown;
}

std::vector<std::string> parse_trusted_keys(std::string_view proc_keys) {
  std::vector<std::string> keys;
  for (const auto line : lines(proc_keys)) {
    const auto description = description_of(line);
    if (!description || description->empty()) continue;
    keys.push_back(printable(*description));
    if (keys.size() == kMaxKeys) break;
  }
  return keys;
}

ModuleTrust read_module_trust(const sys::Host& host) {
  ModuleTrust trust;
  trust.secure_boot = read_secure_boot(host);
  trust.validation_disabled = is_validation_disabled(host);
  trust.lockdown = parse_lockdown(host.read_value("/sys/kernel/security/lockdown").value_or(""));
  trust.signatures_enforced =
      host.read_value("/sys/module/module/parameters/sig_enforce").value_or("N") == "Y";
  const auto keys = host.read("/proc/keys");
  if (keys.ok()) trust.trusted_keys = parse_trusted_keys(*keys);
  trust.enrolled = read_mok_list(host);
  return trust;
}

bool refuses_unsigned(const ModuleTrust& trust) {
  switch (trust.lockdown) {
    case Lockdown::Integrity:
    case Lockdown::Confidentiality: return true;
    case Lockdown::None: return trust.signatures_enforced;
    // Kernels that are started with secure boot lock themselves down, but older ones do not say so.
    case Lockdown::Unknown: break;
  }
  return trust.signatures_enforced ||
         (trust.secure_boot == SecureBoot::On && !trust.validation_disabled);
}

}  // namespace gantry::kernel_module
