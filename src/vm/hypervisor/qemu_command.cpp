// SPDX-License-Identifier: Apache-2.0
#include "vm/hypervisor/qemu_command.hpp"

#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "vm/hypervisor/shell_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>

namespace gantry::hypervisor {
namespace {

bool is_qemu(std::string_view word) {
  const auto name = word.substr(word.rfind('/') + 1);
  return name.starts_with("qemu-system-") || name == "qemu-kvm" || name == "kvm";
}

// `ulimit -l KIB`, also with -S or -H: the last one before QEMU counts.
std::optional<std::uint64_t> lock_limit(const std::vector<ShellWord>& words, std::size_t end) {
  std::optional<std::uint64_t> limit;
  for (std::size_t i = 0; i + 2 < end; ++i) {
    if (words[i].text != "ulimit") continue;
    const auto& flag = words[i + 1].text;
    if (!flag.starts_with('-') || !flag.ends_with('l')) continue;
    const auto& value = words[i + 2].text;
    const auto kib = parse_u64(value);
    if (value == "unlimited") limit = std::numeric_limits<std::uint64_t>::max();
    if (kib && *kib < (1ULL << 50U)) limit = *kib * 1024;
  }
  return limit;
}

// Options of QEMU never begin with another character, and a value begins with a dash only in rare
// options that do not matter here.
QemuCommand options_of(const std::vector<ShellWord>& words, std::size_t begin) {
  QemuCommand command;
  for (std::size_t i = begin; i < words.size(); ++i) {
    std::string_view word = words[i].text;
    if (word.size() > 1 && word.front() == '-') {
      word.remove_prefix(word.starts_with("--") ? 2 : 1);
      QemuOption option{.name = std::string(word), .value = "", .line = words[i].line};
      const bool has_value =
          i + 1 < words.size() && !words[i].ends_command && !words[i + 1].text.starts_with('-');
      if (has_value) option.value = words[++i].text;
      command.options.push_back(std::move(option));
    }
    if (words[i].ends_command) break;
  }
  return command;
}

Result<std::map<std::string, std::string>> json_properties(std::string_view value) {
  GANTRY_TRY(const auto document, json::Document::parse(std::string(value)));
  if (!document.root().is(json::Kind::Object))
    return Error(Errc::Corrupt, "a device in JSON must be an object");
  std::map<std::string, std::string> found;
  for (const auto member : document.root()) {
    const auto text = member.string();
    if (const auto truth = member.boolean()) {
      found[member.key()] = *truth ? "on" : "off";
    } else {
      found[member.key()] = text ? *text : std::string(member.raw());
    }
  }
  return found;
}

// The text up to the next single comma; two commas stand for one.
std::string take_part(std::string_view& rest) {
  std::string part;
  while (!rest.empty()) {
    const bool comma = rest.front() == ',';
    if (comma && !rest.starts_with(",,")) break;
    part += rest.front();
    rest.remove_prefix(comma ? 2 : 1);
  }
  if (!rest.empty()) rest.remove_prefix(1);
  return part;
}

}  // namespace

Result<QemuCommand> parse_qemu_command(std::string_view text) {
  GANTRY_TRY(const auto words, shell_words(text));
  const auto program = std::find_if(words.begin(), words.end(),
                                    [](const ShellWord& word) { return is_qemu(word.text); });
  if (program == words.end()) {
    return Error(Errc::NotFound, "there is no command qemu-system-... in it");
  }
  const auto at = static_cast<std::size_t>(program - words.begin());
  auto command = options_of(words, at + 1);
  command.lock_limit_bytes = lock_limit(words, at);
  return command;
}

Result<std::map<std::string, std::string>> parse_properties(std::string_view value,
                                                            std::string_view first) {
  if (trim(value).starts_with('{')) return json_properties(value);
  std::map<std::string, std::string> found;
  std::string_view rest = value;
  bool is_first = true;
  while (!rest.empty() && found.size() < 1000) {
    const auto part = take_part(rest);
    const auto equals = part.find('=');
    if (equals != std::string::npos) {
      found[part.substr(0, equals)] = part.substr(equals + 1);
    } else if (is_first) {
      found[std::string(first)] = part;
    } else {
      found[part] = "on";
    }
    is_first = false;
  }
  return found;
}

std::optional<std::uint64_t> parse_qemu_size(std::string_view text, std::uint64_t unit) {
  if (text.empty()) return std::nullopt;
  constexpr std::string_view kUnits = "bkmgtpe";
  const auto letter = static_cast<char>(std::tolower(static_cast<unsigned char>(text.back())));
  const auto power = kUnits.find(letter);
  std::uint64_t factor = unit;
  if (power != std::string_view::npos) {
    factor = 1ULL << (10U * power);
    text.remove_suffix(1);
  }
  const auto number = parse_u64(text, 0);
  if (!number || (*number != 0 && factor > (1ULL << 62U) / *number)) return std::nullopt;
  return *number * factor;
}

}  // namespace gantry::hypervisor
