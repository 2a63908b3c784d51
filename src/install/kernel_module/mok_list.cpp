// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/certificate_internal.hpp"
#include "install/kernel_module/der_internal.hpp"
#include "install/kernel_module/module_trust.hpp"

#include <cstring>

namespace gantry::kernel_module {
namespace {

constexpr std::size_t kMaxCertificates = 256;
constexpr std::size_t kOwner = 16;       // an owner's id before each certificate
constexpr std::size_t kListHeader = 28;  // type, size of the list, of its header, of an entry
// EFI_CERT_X509_GUID, a5c059a1-94e4-4aa7-87b5-ab155c2bf072
constexpr std::string_view kX509("\xa1\x59\xc0\xa5\xe4\x94\xa7\x4a\x87\xb5\xab\x15\x5c\x2b\xf0\x72",
                                 16);

// Little endian, like the firmware.
std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 4; i-- > 0;)
    number = number << 8U | static_cast<std::uint8_t>(bytes[at + i]);
  return number;
}

void take_entries(std::string_view entries, std::size_t size,
                  std::vector<EnrolledCertificate>& found) {
  while (size > kOwner && entries.size() >= size && found.size() < kMaxCertificates) {
    if (auto certificate = parse_certificate(entries.substr(kOwner, size - kOwner)))
      found.push_back(std::move(*certificate));
    entries.remove_prefix(size);
  }
}

}  // namespace

std::optional<EnrolledCertificate> parse_certificate(std::string_view der) {
  auto certificate = take_der(der, DerElement::kSequence);
  if (!certificate) return std::nullopt;
  auto body = take_der(*certificate, DerElement::kSequence);
  if (!body) return std::nullopt;
  (void)take_der(*body, DerElement::kContext0);  // the version; absent in version 1
  const auto serial = take_der(*body, DerElement::kInteger);
  const auto algorithm = take_der(*body, DerElement::kSequence);
  const auto issuer = take_der(*body, DerElement::kSequence);
  const auto validity = take_der(*body, DerElement::kSequence);
  const auto subject = take_der(*body, DerElement::kSequence);
  if (!serial || !algorithm || !issuer || !validity || !subject) return std::nullopt;
  return EnrolledCertificate{.issuer = describe_name(*issuer),
                             .subject = describe_name(*subject),
                             .serial = serial_text(*serial)};
}

std::vector<EnrolledCertificate> parse_mok_list(std::string_view lists) {
  std::vector<EnrolledCertificate> found;
  while (lists.size() >= kListHeader) {
    const std::size_t size = number_at(lists, 16);
    const std::size_t header = number_at(lists, 20);
    const std::size_t entry = number_at(lists, 24);
    if (size < kListHeader || size > lists.size() || header > size - kListHeader) break;
    if (lists.starts_with(kX509))
      take_entries(lists.substr(kListHeader + header, size - kListHeader - header), entry, found);
    lists.remove_prefix(size);
  }
  return found;
}

}  // namespace gantry::kernel_module
