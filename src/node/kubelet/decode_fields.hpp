// SPDX-License-Identifier: Apache-2.0
// Turns fields into members: read(field, where) for each type of member.
#pragma once

#include "net/grpc/protobuf.hpp"

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gantry::kubelet {

using grpc::ProtoField;

inline Status read(const ProtoField& field, std::string& into) {
  GANTRY_TRY(into, field.text());
  return {};
}

inline Status read(const ProtoField& field, bool& into) {
  GANTRY_TRY(into, field.boolean());
  return {};
}

inline Status read(const ProtoField& field, std::int64_t& into) {
  GANTRY_TRY(into, field.integer());
  return {};
}

inline Status read(const ProtoField& field, std::vector<std::string>& into) {
  GANTRY_TRY(auto element, field.text());
  into.push_back(std::move(element));
  return {};
}

// Reads a repeated message.
template <class Decode, class T>
Status read(const ProtoField& field, Decode decode, std::vector<T>& into) {
  GANTRY_TRY(const std::string_view bytes, field.message());
  GANTRY_TRY(auto element, decode(bytes));
  into.push_back(std::move(element));
  return {};
}

// Reads a message that has only field 1, a repeated message.
template <class Decode>
auto decode_each(std::string_view bytes, Decode decode)
    -> Result<std::vector<std::decay_t<decltype(*decode(bytes))>>> {
  std::vector<std::decay_t<decltype(*decode(bytes))>> all;
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    if (field.number() == 1) return read(field, decode, all);
    return {};
  }));
  return all;
}

}  // namespace gantry::kubelet
