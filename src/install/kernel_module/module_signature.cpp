// SPDX-License-Identifier: Apache-2.0
#include "install/kernel_module/der_internal.hpp"
#include "install/kernel_module/module_signature_internal.hpp"

#include <fmt/format.h>

namespace gantry::kernel_module {
namespace {

constexpr std::uint8_t kPkcs7 = 2;  // id_type PKEY_ID_PKCS7
constexpr std::string_view kSignedData = "\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02";

// The first signer of SignedData: version, algorithms, content, certificates, lists, signers.
std::optional<std::string_view> first_signer(std::string_view data) {
  if (!take_der(data, DerElement::kInteger)) return std::nullopt;
  if (!take_der(data, DerElement::kSet)) return std::nullopt;
  if (!take_der(data, DerElement::kSequence)) return std::nullopt;
  (void)take_der(data, DerElement::kContext0);
  (void)take_der(data, DerElement::kContext1);
  auto signers = take_der(data, DerElement::kSet);
  if (!signers) return std::nullopt;
  return take_der(*signers, DerElement::kSequence);
}

}  // namespace

Result<std::optional<SignatureTrailer>> parse_signature_trailer(std::string_view end,
                                                                std::uint64_t file_size) {
  using Found = std::optional<SignatureTrailer>;
  if (!end.ends_with(kSignatureMark)) return Found();
  const Error damaged(Errc::Corrupt, "the module's signature is damaged");
  if (end.size() < kSignatureTrailer) return damaged;
  // struct module_signature: algo, hash, id_type, signer_len, key_id_len, three bytes, and the size
  // of the signature with the highest byte first.
  const auto info = end.substr(end.size() - kSignatureTrailer, 12);
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(info[at]); };
  SignatureTrailer trailer;
  trailer.is_pkcs7 = byte(2) == kPkcs7;
  for (std::size_t at = 8; at < 12; ++at) trailer.size = trailer.size << 8U | byte(at);
  if (trailer.size == 0 || trailer.size >= file_size - kSignatureTrailer) return damaged;
  if (!trailer.is_pkcs7) return Found(trailer);
  for (const std::size_t at : {0U, 1U, 3U, 4U, 5U, 6U, 7U})
    if (byte(at) != 0) return damaged;
  return Found(trailer);
}

std::optional<Signer> parse_signer(std::string_view pkcs7) {
  auto message = take_der(pkcs7, DerElement::kSequence);
  if (!message || take_der(*message, DerElement::kObjectId) != kSignedData) return std::nullopt;
  auto wrapped = take_der(*message, DerElement::kContext0);
  if (!wrapped) return std::nullopt;
  const auto data = take_der(*wrapped, DerElement::kSequence);
  if (!data) return std::nullopt;
  auto signer = first_signer(*data);
  if (!signer || !take_der(*signer, DerElement::kInteger)) return std::nullopt;
  if (const auto key_id = take_der(*signer, DerElement::kImplicit0))
    return Signer{.name = hex_text(*key_id), .serial = ""};
  auto certificate = take_der(*signer, DerElement::kSequence);
  if (!certificate) return std::nullopt;
  const auto issuer = take_der(*certificate, DerElement::kSequence);
  const auto serial = take_der(*certificate, DerElement::kInteger);
  if (!issuer || !serial) return std::nullopt;
  return Signer{.name = describe_name(*issuer), .serial = serial_text(*serial)};
}

}  // namespace gantry::kernel_module
