// SPDX-License-Identifier: Apache-2.0
// Reads the keys of one map. After the first error all further calls do nothing, so a decoder is a
// plain list of keys; finish() reports keys that were not read.
#pragma once

#include "base/core/result.hpp"
#include "base/yaml/value.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::cdi {

class FieldReader {
 public:
  // `what` names the map in messages: "a mount".
  FieldReader(const yaml::Value& map, std::string_view what, std::optional<Error>& error);

  FieldReader& text(std::string_view key, std::string& out);
  FieldReader& texts(std::string_view key, std::vector<std::string>& out);
  FieldReader& flag(std::string_view key, bool& out);
  FieldReader& number(std::string_view key, std::optional<std::int64_t>& out);
  FieldReader& number(std::string_view key, std::optional<std::uint32_t>& out);
  FieldReader& numbers(std::string_view key, std::vector<std::uint32_t>& out);
  FieldReader& text_map(std::string_view key, std::map<std::string, std::string>& out);

  // decode(item) for the value of a key, or for each item of its list.
  template <class Decode>
  FieldReader& map(std::string_view key, Decode decode) {
    if (const auto* value = child(key)) decode(*value);
    return *this;
  }
  template <class Decode>
  FieldReader& list(std::string_view key, Decode decode) {
    for (const auto& item : items(key)) decode(item);
    return *this;
  }

  void finish();

 private:
  const yaml::Value* child(std::string_view key);  // nullptr if absent, null or after an error
  const std::vector<yaml::Value>& items(std::string_view key);
  std::optional<std::string> read_text(const yaml::Value& value, std::string_view key);
  std::optional<std::int64_t> read_number(const yaml::Value& value, std::string_view key,
                                          std::int64_t least, std::int64_t most);
  void fail(const yaml::Value& at, std::string_view why);

  const yaml::Value& map_;
  std::string_view what_;
  std::vector<std::string_view> known_;
  std::optional<Error>& error_;
};

}  // namespace gantry::cdi
