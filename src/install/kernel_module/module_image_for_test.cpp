// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/module_image_for_test.hpp"

#include "base/core/base64.hpp"
#include "install/kernel_module/loaded_modules.hpp"

#include <elf.h>

#include <fmt/format.h>

#include <cstring>

namespace gantry::kernel_module {
namespace {

// openssl cms -sign -binary -noattr -nocerts -nosmimecap, what sign-file does
constexpr std::string_view kSignature =
    "MIHZBgkqhkiG9w0BBwKggcswgcgCAQExDTALBglghkgBZQMEAgEwCwYJKoZIhvcNAQcBMYGmMIGjAgEBMDwwMDEV"
    "MBMGA1UECgwMRXhhbXBsZSBDb3JwMRcwFQYDVQQDDA5Ecml2ZXIgc2lnbmluZwIIALHC0+T1BhcwCwYJYIZIAWUD"
    "BAIBMAoGCCqGSM49BAMCBEcwRQIhAKmiZRXAAyk0oWZTGZJ+0gI/rf20r2FwkhYsqSaKdxgUAiBrzHAQ+nDDinh8"
    "U+XmxBzIqyE8rL3cx06+wb1imHJ7wQ==";
// the same with -keyid
constexpr std::string_view kSignatureWithKeyId =
    "MIGwBgkqhkiG9w0BBwKggaIwgZ8CAQMxDTALBglghkgBZQMEAgEwCwYJKoZIhvcNAQcBMX4wfAIBA4AUVUq1OutY"
    "LdrUI4+V5jF76txrR3swCwYJYIZIAWUDBAIBMAoGCCqGSM49BAMCBEgwRgIhAP/QyON+TQElmOwpyqjTnBvccjwa"
    "5gHJZ0RInt3BPoedAiEA32NmNQcotPnG0w0nI7tJIufcumql94ShZVfDMYbaFJs=";
constexpr std::string_view kCertificate =
    "MIIBrDCCAVGgAwIBAgIIALHC0+T1BhcwCgYIKoZIzj0EAwIwMDEVMBMGA1UECgwMRXhhbXBsZSBDb3JwMRcwFQYD"
    "VQQDDA5Ecml2ZXIgc2lnbmluZzAgFw0yNjExMTkwNDI0MjFaGA8yMTI2MTAyNjA0MjQyMVowMDEVMBMGA1UECgwM"
    "RXhhbXBsZSBDb3JwMRcwFQYDVQQDDA5Ecml2ZXIgc2lnbmluZzBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABBTG"
    "l1H0UzuL/2J2hWtAzQjT425qNMEJxbHjtXAkROMZbdkG32oEHbtKqbjx4rg5TCeP+ABGpWwP4vTy+rRrn/ujUzBR"
    "MB0GA1UdDgQWBBRVSrU661gt2tQjj5XmMXvq3GtHezAfBgNVHSMEGDAWgBRVSrU661gt2tQjj5XmMXvq3GtHezAP"
    "BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQCl8V3W17TdISxdjn9YCl2Jk4ulkvK9wYO1cwnS9a5K"
    "xgIhAJ4qux9A+qOBhTqG8rdJISqxQgtmt/rQEdfmQSpYn1nH";

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Header, .modinfo, names of the sections, three sections: null, .modinfo, names.
template <class Header, class Section>
std::string build(const ModuleImage& image) {
  std::string info;
  for (const auto& entry : image.info) info.append(entry).push_back('\0');
  const std::string names = std::string(1, '\0') + image.section + '\0';
  Header header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = image.is_32bit ? ELFCLASS32 : ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = image.type;
  header.e_machine = image.machine;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(Header);
  header.e_shentsize = sizeof(Section);
  header.e_shnum = 3;
  header.e_shstrndx = 2;
  const auto sections_at = (sizeof(Header) + info.size() + names.size() + 7) & ~std::size_t{7};
  header.e_shoff = static_cast<decltype(header.e_shoff)>(sections_at);
  std::string out;
  append(out, header);
  out += info + names;
  out.resize(sections_at, '\0');
  append(out, Section{});
  const auto section = [&](std::uint32_t type, std::uint32_t name, std::size_t at,
                           std::size_t size) {
    Section made{};
    made.sh_type = type;
    made.sh_name = name;
    made.sh_offset = static_cast<decltype(made.sh_offset)>(at);
    made.sh_size = static_cast<decltype(made.sh_size)>(size);
    append(out, made);
  };
  section(SHT_PROGBITS, 1, sizeof(Header), info.size());
  section(SHT_STRTAB, 0, sizeof(Header) + info.size(), names.size());
  return out;
}

}  // namespace

std::string signature_trailer(std::uint32_t size, std::uint8_t id_type) {
  std::string out{'\0', '\0', static_cast<char>(id_type), '\0', '\0', '\0', '\0', '\0'};
  for (int shift = 24; shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(size >> static_cast<unsigned>(shift)));
  return out + "~Module signature appended~\n";
}

std::string module_image(const ModuleImage& image) {
  auto out =
      image.is_32bit ? build<Elf32_Ehdr, Elf32_Shdr>(image) : build<Elf64_Ehdr, Elf64_Shdr>(image);
  if (image.signature.empty()) return out;
  return out + image.signature +
         signature_trailer(static_cast<std::uint32_t>(image.signature.size()));
}

std::string nvidia_module(std::string_view name, std::string_view release, std::string_view version,
                          std::string_view license, std::string_view signature) {
  const bool first = name == "nvidia";
  return module_image(
      {.info = {fmt::format("license={}", license), fmt::format("version={}", version),
                first ? "depends=" : "depends=nvidia", "retpoline=Y",
                fmt::format("name={}", module_name(name)),
                fmt::format("vermagic={} SMP preempt mod_unload modversions ", release)},
       .signature = std::string(signature)});
}

std::string example_signature() {
  return *from_base64(kSignature);
}
std::string example_signature_with_key_id() {
  return *from_base64(kSignatureWithKeyId);
}
std::string example_certificate() {
  return *from_base64(kCertificate);
}

}  // namespace gantry::kernel_module
