// SPDX-License-Identifier: Apache-2.0
#include "vm/hypervisor/vmx.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"

#include <fmt/format.h>

namespace gantry::hypervisor {
namespace {

struct VmxSetting {
  std::string key;
  std::string value;
};

std::optional<VmxSetting> parse_setting(std::string_view line) {
  const auto equals = line.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const auto key = trim(line.substr(0, equals));
  auto value = trim(line.substr(equals + 1));
  if (key.empty() || key.find_first_of(" \t\"") != std::string_view::npos) return std::nullopt;
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    value = value.substr(1, value.size() - 2);
  }
  if (value.find('"') != std::string_view::npos) return std::nullopt;
  return VmxSetting{to_lower(key), std::string(value)};
}

}  // namespace

Result<VmxFile> VmxFile::parse(std::string_view text) {
  if (text.size() > kVmxSizeLimit)
    return Error(Errc::TooLarge, fmt::format("the file has {}; at most {} are read",
                                             human_bytes(text.size()), human_bytes(kVmxSizeLimit)));
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  VmxFile file;
  int number = 0;
  for (const auto whole : lines(text)) {
    if (++number > static_cast<int>(kVmxLineLimit))
      return Error(Errc::TooLarge, fmt::format("more than {} lines", kVmxLineLimit));
    const auto line = trim(whole);
    if (line.empty() || line.front() == '#') continue;
    auto setting = parse_setting(line);
    if (!setting) {
      return Error(Errc::Corrupt, fmt::format("line {} is not a setting `key = \"value\"`: {}",
                                              number, printable(line.substr(0, 80))));
    }
    file.values_[setting->key] = {.text = std::move(setting->value), .line = number};
  }
  return file;
}

const VmxValue* VmxFile::find(std::string_view key) const {
  const auto found = values_.find(to_lower(key));
  return found == values_.end() ? nullptr : &found->second;
}

std::string VmxFile::value(std::string_view key) const {
  const auto* found = find(key);
  return found == nullptr ? "" : found->text;
}

bool VmxFile::is_true(std::string_view key) const {
  return to_lower(value(key)) == "true";
}

int VmxFile::line(std::string_view key) const {
  const auto* found = find(key);
  return found == nullptr ? 0 : found->line;
}

}  // namespace gantry::hypervisor
