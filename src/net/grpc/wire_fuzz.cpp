// SPDX-License-Identifier: Apache-2.0
// Every decoded message can be encoded again and decodes to the same value; the reader never reads
// beyond its bytes.
#include "net/grpc/protobuf.hpp"

#include <cstdint>
#include <vector>

namespace {

using gantry::Status;
using gantry::grpc::each_field;
using gantry::grpc::ProtoField;

void walk(std::string_view bytes, int depth) {
  static_cast<void>(gantry::grpc::decode_map_entry(bytes).ok());
  static_cast<void>(each_field(bytes, [&](const ProtoField& field) -> Status {
                      static_cast<void>(field.text().ok());
                      const auto inner = field.message();
                      if (inner.ok() && depth < 8) walk(*inner, depth + 1);
                      return {};
                    }).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (size < 4096) walk(bytes, 0);

  gantry::grpc::ProtoWriter again;
  std::size_t count = 0;
  const auto read = each_field(bytes, [&](const ProtoField& field) -> Status {
    if (const auto number = field.integer(); number.ok() && *number != 0) {
      again.number(field.number(), *number);
      ++count;
    } else if (const auto message = field.message(); message.ok()) {
      again.message(field.number(), *message);
      ++count;
    }
    return {};
  });
  if (!read.ok()) return 0;
  std::size_t count_again = 0;
  GANTRY_ASSERT(each_field(again.bytes(), [&](const ProtoField&) -> Status {
                  ++count_again;
                  return {};
                }).ok());
  GANTRY_ASSERT(count == count_again);
  return 0;
}
