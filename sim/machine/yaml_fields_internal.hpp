// SPDX-License-Identifier: Apache-2.0
// Reads the keys of one YAML map into a struct. It keeps the first error and skips the rest, so a
// decoder is a plain list of keys. finish() reports the error, or any key that was not read.
#pragma once

#include "gpu/model/pci_address.hpp"
#include "sim/machine/machine.hpp"
#include "sim/machine/yaml.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::sim {

class YamlFields {
 public:
  // `what` names the map in messages: "gpu".
  YamlFields(const YamlValue& map, std::string_view what);

  YamlFields& text(std::string_view key, std::string& out);
  YamlFields& u32(std::string_view key, std::uint32_t& out, std::uint64_t most = UINT32_MAX);
  YamlFields& u64(std::string_view key, std::uint64_t& out);
  YamlFields& i32(std::string_view key, std::int32_t& out);    // "N/A" = kUnset
  YamlFields& flag(std::string_view key, bool& out);           // true, false
  YamlFields& mode(std::string_view key, std::uint32_t& out);  // octal
  YamlFields& address(std::string_view key, model::PciAddress& out);
  YamlFields& address(std::string_view key, std::optional<model::PciAddress>& out);
  YamlFields& number(std::string_view key, std::optional<std::uint32_t>& out);
  YamlFields& texts(std::string_view key, std::vector<std::string>& out);
  YamlFields& numbers(std::string_view key, std::vector<std::uint32_t>& out);
  YamlFields& pairs(std::string_view key, KeyValues& out);

  const YamlValue* child(std::string_view key);  // marks it as known; nullptr when absent
  const std::vector<YamlValue>& list(std::string_view key);

  void fail(const YamlValue& at, std::string_view why);
  Status take(Status status);  // keeps a nested decoder's error
  Status finish();

 private:
  const YamlValue* scalar(std::string_view key);
  const YamlValue& map_;
  std::string what_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> error_;
};

}  // namespace gantry::sim
