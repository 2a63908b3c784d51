// SPDX-License-Identifier: Apache-2.0
// The part of the protobuf wire format that the node's small services need: varints, strings and
// nested messages. No descriptors, no generated code: a message's decoder is a switch over field
// numbers.
#pragma once

#include "base/core/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::grpc {

// Omits fields with their default value, as proto3 does, except in add() and message(), where the
// presence of the field has a meaning.
class ProtoWriter {
 public:
  ProtoWriter& number(std::uint32_t field, std::int64_t value);
  ProtoWriter& boolean(std::uint32_t field, bool value);
  ProtoWriter& text(std::uint32_t field, std::string_view value);
  ProtoWriter& add(std::uint32_t field,
                   std::string_view element);  // one element of a repeated string
  ProtoWriter& message(std::uint32_t field, std::string_view encoded);
  ProtoWriter& entry(std::uint32_t field, std::string_view key,
                     std::string_view value);  // of a map

  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  void varint(std::uint64_t value);
  std::string bytes_;
};

// One field of a message. Must not outlive the bytes of the message.
class ProtoField {
 public:
  std::uint32_t number() const { return number_; }

  // Corrupt if the field has another type.
  Result<std::int64_t> integer() const;
  Result<bool> boolean() const;
  Result<std::string> text() const;          // UTF-8
  Result<std::string_view> message() const;  // its bytes

 private:
  friend class ProtoReader;
  enum class Type : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };
  std::uint32_t number_ = 0;
  Type type_ = Type::Varint;
  std::uint64_t value_ = 0;
  std::string_view bytes_;
};

// Reads the fields in order. Never reads beyond the given bytes; returns Corrupt if a field does
// not fit.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : rest_(bytes) {}

  // Returns false at the end of the message.
  Result<bool> next(ProtoField& field);

 private:
  Result<std::uint64_t> varint();
  Result<std::string_view> take(std::uint64_t length);
  std::string_view rest_;
};

// each_field(bytes, [&](const ProtoField& field) -> Status { switch (field.number()) ... });
template <class OnField>
Status each_field(std::string_view bytes, OnField on_field) {
  ProtoReader reader(bytes);
  ProtoField field;
  for (;;) {
    GANTRY_TRY(const bool more, reader.next(field));
    if (!more) return {};
    GANTRY_CHECK(on_field(field));
  }
}

// An entry of a map<string, string>.
struct MapEntry {
  std::string key;
  std::string value;
};
Result<MapEntry> decode_map_entry(std::string_view bytes);

}  // namespace gantry::grpc
