// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/openpgp_key.hpp"

#include "base/core/base64.hpp"
#include "base/core/printable.hpp"
#include "base/core/text.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace gantry::driver_package {
namespace {

constexpr std::string_view kBlockBegin = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
constexpr std::string_view kBlockEnd = "-----END PGP PUBLIC KEY BLOCK-----";
constexpr std::size_t kLargestFile = std::size_t{1} << 20;
constexpr std::size_t kMostKeys = 64;
constexpr std::size_t kArmorColumns = 64;
constexpr std::size_t kLargestKeyPacket = 65535;

enum PacketTag : unsigned { kSignature = 2, kPublicKey = 6, kUserId = 13, kSubkey = 14 };

Error not_a_key(std::string_view what) {
  return {Errc::Corrupt, fmt::format("it is not a file of OpenPGP keys: {}", what)};
}

struct Packet {
  unsigned tag = 0;
  std::string_view body;
  std::string_view whole;  // with its header
};

std::uint64_t number_of(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char c : bytes) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

struct PacketLength {
  std::size_t at = 1;      // of its bytes
  std::size_t size = 0;    // how many bytes it has
  std::size_t offset = 0;  // to add to their number
  bool known = true;       // false: a part only, or up to the end
};

PacketLength old_length(unsigned char first) {
  constexpr std::array<std::size_t, 4> kSizes = {1, 2, 4, 0};
  return {.size = kSizes[first & 3U], .known = (first & 3U) != 3};
}

PacketLength new_length(unsigned char second) {
  if (second < 192) return {.size = 1};
  if (second < 224) return {.size = 2, .offset = 192 - (std::size_t{192} << 8)};  // wraps
  return {.at = 2, .size = 4, .known = second == 255};
}

Result<Packet> next_packet(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes.front());
  if ((first & 0x80U) == 0) return not_a_key("a packet has no header");
  const bool is_new = (first & 0x40U) != 0;
  if (is_new && bytes.size() < 2) return not_a_key("it ends inside of a packet");
  const auto length = is_new ? new_length(static_cast<unsigned char>(bytes[1])) : old_length(first);
  if (!length.known) return not_a_key("a packet does not say how long it is");
  const auto header = length.at + length.size;
  if (bytes.size() < header) return not_a_key("it ends inside of a packet");
  const auto size =
      static_cast<std::size_t>(number_of(bytes.substr(length.at, length.size))) + length.offset;
  if (size > bytes.size() - header) return not_a_key("it ends inside of a packet");
  return Packet{.tag = is_new ? first & 0x3FU : (first >> 2) & 0x0FU,
                .body = bytes.substr(header, size),
                .whole = bytes.substr(0, header + size)};
}

std::string digest_of(const EVP_MD* kind, std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  GANTRY_ASSERT(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, kind, nullptr) == 1);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02X}", digest[i]);
  return text;
}

std::string big_endian(std::size_t number, int bytes) {
  std::string text;
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8)
    text += static_cast<char>(number >> shift & 0xFFU);
  return text;
}

Result<std::string> fingerprint_of(std::string_view body) {
  if (body.size() > kLargestKeyPacket) return not_a_key("a key is too large");
  const auto version = body.empty() ? '\0' : body.front();
  if (version == 4)
    return digest_of(EVP_sha1(), fmt::format("\x99{}{}", big_endian(body.size(), 2), body));
  if (version == 6)
    return digest_of(EVP_sha256(), fmt::format("\x9B{}{}", big_endian(body.size(), 4), body));
  return not_a_key("a key has another version than 4 and 6");
}

class KeyReader {
 public:
  Status read(std::string_view bytes) {
    while (!bytes.empty()) {
      GANTRY_TRY(const auto packet, next_packet(bytes));
      GANTRY_CHECK(add(packet));
      bytes.remove_prefix(packet.whole.size());
    }
    return {};
  }
  std::vector<RepositoryKey> keys;

 private:
  Status add(const Packet& packet) {
    if (packet.tag == kPublicKey) return begin(packet);
    if (keys.empty()) return not_a_key("it does not begin with a key");
    auto& key = keys.back();
    if (packet.tag == kUserId && key.user.empty()) key.user = printable(packet.body.substr(0, 200));
    // What signs a packet stands behind it, so it goes with it.
    if (packet.tag != kSignature) of_key_ = packet.tag == kUserId;
    const bool known = of_key_ || packet.tag == kSubkey || packet.tag == kSignature;
    if (of_key_) key.packets += packet.whole;
    if (known) key.with_subkeys += packet.whole;
    return {};
  }

  Status begin(const Packet& packet) {
    if (keys.size() == kMostKeys) return not_a_key("it has too many keys");
    GANTRY_TRY(auto fingerprint, fingerprint_of(packet.body));
    of_key_ = true;
    keys.push_back({.fingerprint = std::move(fingerprint),
                    .packets = std::string(packet.whole),
                    .with_subkeys = std::string(packet.whole)});
    return {};
  }

  bool of_key_ = false;
};

// Without the lines "Version: ..." at its beginning and the check sum at its end.
Result<std::string> decode_block(std::string_view block) {
  std::string text;
  bool in_header = true;
  for (auto line : lines(block)) {
    line = trim(line);
    if (line.starts_with('=')) break;
    if (in_header && (line.empty() || contains(line, ": "))) continue;
    in_header = false;
    text += line;
  }
  auto bytes = from_base64(text);
  if (!bytes.ok()) return not_a_key("a block is damaged");
  return bytes;
}

std::uint32_t crc24(std::string_view bytes) {
  std::uint32_t crc = 0xB704CE;
  for (const char c : bytes) {
    crc ^= std::uint32_t{static_cast<unsigned char>(c)} << 16;
    for (int bit = 0; bit < 8; ++bit) {
      crc <<= 1;
      if ((crc & 0x1000000U) != 0) crc ^= 0x1864CFB;
    }
  }
  return crc & 0xFFFFFF;
}

}  // namespace

Result<std::vector<RepositoryKey>> parse_repository_keys(std::string_view file) {
  if (file.size() > kLargestFile) return not_a_key("it is too large");
  KeyReader reader;
  if (!contains(file, kBlockBegin)) {
    GANTRY_CHECK(reader.read(file));
  }
  for (auto at = file.find(kBlockBegin); at != std::string_view::npos;) {
    const auto begin = at + kBlockBegin.size();
    const auto end = file.find(kBlockEnd, begin);
    if (end == std::string_view::npos) return not_a_key("a block has no end");
    GANTRY_TRY(const auto bytes, decode_block(file.substr(begin, end - begin)));
    GANTRY_CHECK(reader.read(bytes));
    at = file.find(kBlockBegin, end);
  }
  if (reader.keys.empty()) return not_a_key("it has no key");
  return std::move(reader.keys);
}

std::optional<std::string> parse_fingerprint(std::string_view text) {
  std::string digits;
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  for (const char c : text) {
    const bool is_letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (c == ' ' || c == ':') continue;
    if (!is_digit(c) && !is_letter) return std::nullopt;
    digits += c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  if (digits.size() != 40 && digits.size() != 64) return std::nullopt;
  return digits;
}

std::string to_armor(std::string_view packets) {
  const auto text = to_base64(packets);
  auto armor = fmt::format("{}\n\n", kBlockBegin);
  for (std::size_t at = 0; at < text.size(); at += kArmorColumns)
    armor += fmt::format("{}\n", text.substr(at, kArmorColumns));
  return armor + fmt::format("={}\n{}\n", to_base64(big_endian(crc24(packets), 3)), kBlockEnd);
}

}  // namespace gantry::driver_package
