// SPDX-License-Identifier: Apache-2.0
#include "net/grpc/protobuf.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

namespace gantry::grpc {
namespace {

constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kFixed64 = 1;
constexpr std::uint32_t kBytes = 2;
constexpr std::uint32_t kFixed32 = 5;
constexpr std::uint64_t kLargestField = (std::uint64_t{1} << 29) - 1;

Error corrupt(std::string_view why) {
  return {Errc::Corrupt, fmt::format("protobuf message: {}", why)};
}

Error other_type(std::uint32_t field) {
  return corrupt(fmt::format("field {} has the wrong type", field));
}

}  // namespace

void ProtoWriter::varint(std::uint64_t value) {
  while (value >= 0x80) {
    bytes_.push_back(static_cast<char>((value & 0x7F) | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<char>(value));
}

ProtoWriter& ProtoWriter::number(std::uint32_t field, std::int64_t value) {
  if (value == 0) return *this;
  varint(std::uint64_t{field} << 3 | kVarint);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

ProtoWriter& ProtoWriter::boolean(std::uint32_t field, bool value) {
  return number(field, value ? 1 : 0);
}

ProtoWriter& ProtoWriter::text(std::uint32_t field, std::string_view value) {
  return value.empty() ? *this : message(field, value);
}

ProtoWriter& ProtoWriter::add(std::uint32_t field, std::string_view element) {
  return message(field, element);
}

ProtoWriter& ProtoWriter::message(std::uint32_t field, std::string_view encoded) {
  varint(std::uint64_t{field} << 3 | kBytes);
  varint(encoded.size());
  bytes_.append(encoded);
  return *this;
}

ProtoWriter& ProtoWriter::entry(std::uint32_t field, std::string_view key, std::string_view value) {
  return message(field, ProtoWriter().text(1, key).text(2, value).bytes());
}

Result<std::int64_t> ProtoField::integer() const {
  if (type_ != Type::Varint) return other_type(number_);
  return static_cast<std::int64_t>(value_);
}

Result<bool> ProtoField::boolean() const {
  GANTRY_TRY(const std::int64_t value, integer());
  return value != 0;
}

Result<std::string> ProtoField::text() const {
  if (type_ != Type::Bytes) return other_type(number_);
  if (!is_utf8(bytes_)) return corrupt(fmt::format("field {} is not UTF-8", number_));
  return std::string(bytes_);
}

Result<std::string_view> ProtoField::message() const {
  if (type_ != Type::Bytes) return other_type(number_);
  return bytes_;
}

Result<std::uint64_t> ProtoReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) return corrupt("the message ends inside a number");
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    if (shift == 63 && byte > 1) break;
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  return corrupt("a number has more than 64 bits");
}

Result<std::string_view> ProtoReader::take(std::uint64_t length) {
  if (length > rest_.size()) return corrupt("the message ends inside a field");
  const auto taken = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return taken;
}

Result<bool> ProtoReader::next(ProtoField& field) {
  if (rest_.empty()) return false;
  GANTRY_TRY(const std::uint64_t tag, varint());
  const std::uint64_t number = tag >> 3;
  if (number == 0 || number > kLargestField) return corrupt("impossible field number");
  field.number_ = static_cast<std::uint32_t>(number);
  switch (tag & 7) {
    case kVarint: {
      field.type_ = ProtoField::Type::Varint;
      GANTRY_TRY(field.value_, varint());
      return true;
    }
    case kBytes: {
      field.type_ = ProtoField::Type::Bytes;
      GANTRY_TRY(const std::uint64_t length, varint());
      GANTRY_TRY(field.bytes_, take(length));
      return true;
    }
    case kFixed64: {
      field.type_ = ProtoField::Type::Fixed64;
      GANTRY_TRY(field.bytes_, take(8));
      return true;
    }
    case kFixed32: {
      field.type_ = ProtoField::Type::Fixed32;
      GANTRY_TRY(field.bytes_, take(4));
      return true;
    }
    default: return corrupt("a field has an unknown type");  // groups: proto3 has none
  }
}

Result<MapEntry> decode_map_entry(std::string_view bytes) {
  MapEntry entry;
  GANTRY_CHECK(each_field(bytes, [&](const ProtoField& field) -> Status {
    if (field.number() == 1) {
      GANTRY_TRY(entry.key, field.text());
    } else if (field.number() == 2) {
      GANTRY_TRY(entry.value, field.text());
    }
    return {};
  }));
  return entry;
}

}  // namespace gantry::grpc
