// SPDX-License-Identifier: Apache-2.0
// Reads the fields of a DNS message in their order. Every function returns nullopt at the end of
// the message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::dns {

inline constexpr std::size_t kHeaderSize = 12;
inline constexpr std::size_t kMaxLabelSize = 63;

struct MessageHeader {
  std::uint16_t id = 0;
  std::uint16_t flags = 0;
  std::uint16_t questions = 0;
  std::uint16_t answers = 0;
};

struct RecordHeader {  // of a record, behind its name
  std::uint16_t type = 0;
  std::uint16_t record_class = 0;
  std::uint16_t data_size = 0;
};

class MessageReader {
 public:
  explicit MessageReader(std::string_view message) : message_(message) {}

  std::size_t offset() const { return offset_; }
  std::optional<std::uint16_t> u16();
  std::optional<std::string_view> bytes(std::size_t size);
  std::optional<MessageHeader> header();
  std::optional<RecordHeader> record_header();

  // A name with its pointers resolved, in lower case: each label with its length in front, which
  // keeps a dot inside a label apart from a dot between labels.
  std::optional<std::string> name();
  std::optional<std::string> name_at(std::size_t offset) const;  // reads on where it was

 private:
  std::string_view message_;
  std::size_t offset_ = 0;
};

}  // namespace gantry::dns
