// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/module_trust.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::kernel_module {
namespace {

// "Debian Secure Boot CA: 6ccece7e" is a key of that name, or with that id.
bool is_key_of(std::string_view description, std::string_view signer) {
  const auto colon = description.rfind(": ");
  if (colon == std::string_view::npos) return description == signer;
  return description.substr(0, colon) == signer || description.substr(colon + 2) == signer;
}

enum class KeyState : std::uint8_t { Present, Absent, OtherKey, Unknown };

// The kernel looks a key up by the issuer and the serial number of its certificate. /proc/keys
// shows neither, only the subject's name: the two names are equal for certificates that sign
// themselves.
KeyState find_key(const ModuleFile& file, const ModuleTrust& trust) {
  if (file.signer.empty()) return KeyState::Unknown;
  if (trust.trusted_keys.empty() && trust.enrolled.empty()) return KeyState::Unknown;
  const auto same = [&](const EnrolledCertificate& certificate) {
    return certificate.issuer == file.signer && certificate.serial == file.signature_serial;
  };
  if (std::any_of(trust.enrolled.begin(), trust.enrolled.end(), same)) return KeyState::Present;
  const auto keys =
      std::count_if(trust.trusted_keys.begin(), trust.trusted_keys.end(),
                    [&](const std::string& key) { return is_key_of(key, file.signer); });
  const auto enrolled =
      std::count_if(trust.enrolled.begin(), trust.enrolled.end(),
                    [&](const EnrolledCertificate& other) { return other.subject == file.signer; });
  if (keys == 0) return enrolled == 0 ? KeyState::Absent : KeyState::OtherKey;
  // Each key of that name is a known certificate with another serial number.
  return keys <= enrolled ? KeyState::OtherKey : KeyState::Present;
}

std::string rule_of(const ModuleTrust& trust) {
  const bool locked = trust.lockdown == ModuleTrust::Lockdown::Integrity ||
                      trust.lockdown == ModuleTrust::Lockdown::Confidentiality;
  if (trust.secure_boot == ModuleTrust::SecureBoot::On && !trust.validation_disabled)
    return "secure boot is on, so the kernel accepts signed modules only";
  if (locked)
    return fmt::format("the kernel is locked down ({}), so it accepts signed modules only",
                       to_string(trust.lockdown));
  return "the kernel accepts signed modules only (module.sig_enforce)";
}

}  // namespace

std::optional<std::string> reason_refused(const ModuleFile& file, const ModuleTrust& trust) {
  if (!refuses_unsigned(trust)) return std::nullopt;
  const auto rule = rule_of(trust);
  if (!file.is_signed) return fmt::format("{}, and the module {} is not signed", rule, file.name);
  switch (find_key(file, trust)) {
    case KeyState::Present:
    case KeyState::Unknown: return std::nullopt;
    case KeyState::Absent:
      return fmt::format("{}, and it has no key of \"{}\", which signed the module {}", rule,
                         file.signer, file.name);
    case KeyState::OtherKey: break;
  }
  return fmt::format(
      "{}, and the module {} was signed with another key of \"{}\" than the one that is enrolled",
      rule, file.name, file.signer);
}

std::string remedy_refused(const ModuleFile& file, const ModuleTrust& trust) {
  // Without UEFI's secure boot there may be no place where an owner can enrol a key.
  if (trust.secure_boot == ModuleTrust::SecureBoot::Off)
    return "use modules that are signed with a key of this kernel, such as the distribution's "
           "signed packages, or start the kernel without its options module.sig_enforce=1 and "
           "lockdown";
  const std::string_view first =
      file.is_signed
          ? "enrol the certificate of the key that signed it"
          : "use the distribution's signed modules, or sign the module on a build machine "
            "and enrol the certificate";
  return fmt::format(
      "{}: sudo mokutil --import CERTIFICATE.der && sudo reboot, then confirm at the console; keep "
      "the private key off this machine",
      first);
}

}  // namespace gantry::kernel_module
