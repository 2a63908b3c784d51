// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "net/dns/message_reader_internal.hpp"

namespace gantry::dns {
namespace {

constexpr std::size_t kMaxWireName = 255;
constexpr unsigned kPointerBits = 0xC0;  // the two high bits of a length say that it is a pointer

unsigned byte_at(std::string_view text, std::size_t offset) {
  return static_cast<unsigned char>(text[offset]);
}

}  // namespace

std::optional<std::uint16_t> MessageReader::u16() {
  const auto two = bytes(2);
  if (!two) return std::nullopt;
  return static_cast<std::uint16_t>(byte_at(*two, 0) << 8 | byte_at(*two, 1));
}

std::optional<std::string_view> MessageReader::bytes(std::size_t size) {
  if (size > message_.size() - offset_) return std::nullopt;
  const auto found = message_.substr(offset_, size);
  offset_ += size;
  return found;
}

std::optional<MessageHeader> MessageReader::header() {
  if (message_.size() < kHeaderSize) return std::nullopt;
  MessageHeader header{.id = *u16(), .flags = *u16(), .questions = *u16(), .answers = *u16()};
  (void)bytes(4);  // how many records of other kinds
  return header;
}

std::optional<RecordHeader> MessageReader::record_header() {
  const auto type = u16();
  const auto record_class = u16();
  const auto time_to_live = bytes(4);
  const auto size = u16();
  if (!type || !record_class || !time_to_live || !size) return std::nullopt;
  return RecordHeader{.type = *type, .record_class = *record_class, .data_size = *size};
}

std::optional<std::string> MessageReader::name() {
  const auto begin = offset_;
  while (true) {  // finds the end of the name here; where its pointers lead is read below
    const auto size = bytes(1);
    if (!size) return std::nullopt;
    const auto length = byte_at(*size, 0);
    if (length == 0) break;
    const bool is_pointer = (length & kPointerBits) == kPointerBits;
    if (!bytes(is_pointer ? 1 : length)) return std::nullopt;
    if (is_pointer) break;
  }
  return name_at(begin);
}

std::optional<std::string> MessageReader::name_at(std::size_t offset) const {
  std::string name;
  std::size_t lowest = offset;  // a pointer must lead below all places it came from: no loops
  while (offset < message_.size()) {
    const auto length = byte_at(message_, offset);
    if (length == 0) return name;
    if ((length & kPointerBits) == kPointerBits) {
      if (offset + 1 >= message_.size()) return std::nullopt;
      offset = (length & ~kPointerBits) << 8 | byte_at(message_, offset + 1);
      if (offset >= lowest) return std::nullopt;
      lowest = offset;
      continue;
    }
    const auto label = message_.substr(offset, 1 + std::size_t{length});
    if (length > kMaxLabelSize || label.size() != 1 + std::size_t{length} ||
        name.size() + label.size() >= kMaxWireName)
      return std::nullopt;
    name += to_lower(label);
    offset += label.size();
  }
  return std::nullopt;
}

}  // namespace gantry::dns
