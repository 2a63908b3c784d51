// SPDX-License-Identifier: Apache-2.0
// A VMware .vmx file: lines `key = "value"`. Keys have no case.
#pragma once

#include "base/core/result.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::hypervisor {

constexpr std::size_t kVmxSizeLimit = std::size_t{1} << 20;
constexpr std::size_t kVmxLineLimit = 20'000;

struct VmxValue {
  std::string text;
  int line = 0;
};

class VmxFile {
 public:
  // Corrupt, with the line, for a line that is neither a setting, a comment nor empty. If a key is
  // there twice, the last one counts, as in ESXi.
  static Result<VmxFile> parse(std::string_view text);

  const VmxValue* find(std::string_view key) const;  // nullptr if it is not set
  std::string value(std::string_view key) const;     // "" if it is not set
  bool is_true(std::string_view key) const;
  int line(std::string_view key) const;  // 0 if it is not set

  const std::map<std::string, VmxValue>& values() const { return values_; }  // keys in lower case

 private:
  std::map<std::string, VmxValue> values_;
};

}  // namespace gantry::hypervisor
