// SPDX-License-Identifier: Apache-2.0
#include "container/plan/requirement.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace gantry::plan {
namespace {

using model::Gpu;
using model::Inventory;

constexpr std::size_t kMaxExpressionBytes =
    16384;  // bytes of one expression; images of today have 2000
constexpr std::size_t kMaxQuotedExpressionBytes = 120;

enum class Property : std::uint8_t { Cuda, Driver, Arch, Brand };
enum class Tristate : std::uint8_t { No, Unknown, Yes };

struct Condition {
  Property property = Property::Cuda;
  std::string_view operation;
  std::string_view value;
  std::string_view text;  // as written
};

struct Branch {
  int driver;
  std::string_view cuda;
};
constexpr std::array kBranches{
    Branch{375, "8.0"},  Branch{384, "9.0"},  Branch{387, "9.1"},  Branch{390, "9.1"},
    Branch{396, "9.2"},  Branch{410, "10.0"}, Branch{418, "10.1"}, Branch{430, "10.2"},
    Branch{435, "10.1"}, Branch{440, "10.2"}, Branch{450, "11.0"}, Branch{455, "11.1"},
    Branch{460, "11.2"}, Branch{465, "11.3"}, Branch{470, "11.4"}, Branch{495, "11.5"},
    Branch{510, "11.6"}, Branch{515, "11.7"}, Branch{520, "11.8"}, Branch{525, "12.0"},
    Branch{530, "12.1"}, Branch{535, "12.2"}, Branch{545, "12.3"}, Branch{550, "12.4"},
    Branch{555, "12.5"}, Branch{560, "12.6"}, Branch{565, "12.7"}, Branch{570, "12.8"},
    Branch{575, "12.9"}, Branch{580, "13.0"}, Branch{590, "13.1"},
};

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const bool space = i == text.size() || text[i] == ' ' || text[i] == '\t' || text[i] == '\n';
    if (!space) continue;
    if (i > start) found.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  return found;
}

std::optional<Property> property_of(std::string_view word) {
  if (word == "cuda") return Property::Cuda;
  if (word == "driver") return Property::Driver;
  if (word == "arch") return Property::Arch;
  if (word == "brand") return Property::Brand;
  return std::nullopt;
}

// "12.4" -> {12, 4}; nullopt for anything else.
std::optional<std::vector<std::uint64_t>> version_of(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  for (const auto piece : split(text, '.')) {
    const auto number = parse_u64(piece);
    if (!number || numbers.size() == 4) return std::nullopt;
    numbers.push_back(*number);
  }
  if (numbers.empty()) return std::nullopt;
  return numbers;
}

Result<Condition> parse_condition(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return Error(Errc::Invalid, fmt::format("NVIDIA_REQUIRE_* has \"{}\", {}; examples are "
                                            "cuda>=12.4 and brand=tesla,driver>=470",
                                            text.substr(0, kMaxQuotedExpressionBytes), why));
  };
  const auto at = text.find_first_of("=!<>");
  if (at == std::string_view::npos) return bad("which has no operator");
  const auto property = property_of(text.substr(0, at));
  if (!property) return bad("and its property is not one of cuda, driver, arch, brand");
  const auto rest = text.substr(at);
  const std::size_t length = rest.size() > 1 && rest[1] == '=' ? 2 : 1;
  Condition atom{*property, rest.substr(0, length), rest.substr(length), text};
  constexpr std::array<std::string_view, 6> kOperators{"=", "!=", "<", "<=", ">", ">="};
  if (atom.operation == "==") atom.operation = "=";
  if (std::find(kOperators.begin(), kOperators.end(), atom.operation) == kOperators.end())
    return bad("and its operator is not one of = != < <= > >=");
  if (atom.value.empty()) return bad("which has no value after the operator");
  if (*property == Property::Brand) {
    if (atom.operation != "=" && atom.operation != "!=")
      return bad("and brands can be compared only with = and !=");
  } else if (!version_of(atom.value)) {
    return bad("and its value is not a version");
  }
  return atom;
}

int compare(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const auto left = i < a.size() ? a[i] : 0;
    const auto right = i < b.size() ? b[i] : 0;
    if (left != right) return left < right ? -1 : 1;
  }
  return 0;
}

bool holds(int order, std::string_view operation) {
  if (operation == "=") return order == 0;
  if (operation == "!=") return order != 0;
  if (operation == "<") return order < 0;
  if (operation == "<=") return order <= 0;
  if (operation == ">") return order > 0;
  return order >= 0;
}

// "NVIDIA RTX" and "nvidiartx" are the same brand.
std::string plain_brand(std::string_view brand) {
  auto text = to_lower(brand);
  std::erase_if(text, [](char c) { return c == ' ' || c == '-' || c == '_'; });
  return text;
}

std::string cuda_of(const Inventory& machine) {
  const auto& driver = machine.driver;
  return driver.cuda_version.empty() ? newest_cuda_for_driver(driver.version) : driver.cuda_version;
}

// The machine's value of a property; "" if it is unknown.
std::string fact(Property property, const Inventory& machine, const Gpu* gpu) {
  switch (property) {
    case Property::Cuda: return cuda_of(machine);
    case Property::Driver: return machine.driver.version;
    case Property::Brand: return gpu == nullptr ? "" : plain_brand(gpu->brand);
    case Property::Arch: break;
  }
  if (gpu == nullptr || !gpu->compute_capability) return "";
  return fmt::format("{}.{}", gpu->compute_capability->major, gpu->compute_capability->minor);
}

bool is_of_gpu(Property property) {
  return property == Property::Arch || property == Property::Brand;
}

Tristate judge_one(const Condition& atom, const Inventory& machine, const Gpu* gpu) {
  const auto known = fact(atom.property, machine, gpu);
  if (known.empty()) return Tristate::Unknown;
  if (atom.property == Property::Brand) {
    return holds(known == plain_brand(atom.value) ? 0 : 1, atom.operation) ? Tristate::Yes
                                                                           : Tristate::No;
  }
  const auto have = version_of(known);
  if (!have) return Tristate::Unknown;
  return holds(compare(*have, *version_of(atom.value)), atom.operation) ? Tristate::Yes
                                                                        : Tristate::No;
}

Tristate judge(const Condition& atom, const Inventory& machine,
               std::span<const SelectedDevice> devices) {
  if (!is_of_gpu(atom.property)) return judge_one(atom, machine, nullptr);
  auto all = Tristate::Yes;  // without a GPU the requirement is met
  for (const auto& device : devices) all = std::min(all, judge_one(atom, machine, device.gpu));
  return all;
}

std::string here(const Condition& atom, const Inventory& machine,
                 std::span<const SelectedDevice> devices) {
  if (atom.property == Property::Cuda) {
    return fmt::format("this machine's driver {} has {}", machine.driver.version, cuda_of(machine));
  }
  if (atom.property == Property::Driver)
    return fmt::format("this machine's driver is {}", machine.driver.version);
  for (const auto& device : devices) {
    if (judge_one(atom, machine, device.gpu) != Tristate::No) continue;
    return fmt::format("GPU {} ({}) has {} {}", device.gpu->index, device.gpu->name,
                       atom.property == Property::Arch ? "arch" : "brand",
                       fact(atom.property, machine, device.gpu));
  }
  return "this machine has another value";
}

Error unmet(const std::vector<std::vector<Condition>>& alternatives, std::string_view text,
            const Inventory& machine, std::span<const SelectedDevice> devices) {
  // The first alternative is the main requirement; the others are exceptions.
  const Condition* failing = nullptr;
  for (const auto& atom : alternatives.front()) {
    if (failing == nullptr && judge(atom, machine, devices) == Tristate::No) failing = &atom;
  }
  if (failing == nullptr) failing = &alternatives.front().front();
  std::string others;
  if (alternatives.size() > 1) {
    others = fmt::format(" (none of the {} alternatives in \"{}{}\" is met)", alternatives.size(),
                         text.substr(0, kMaxQuotedExpressionBytes),
                         text.size() > kMaxQuotedExpressionBytes ? "..." : "");
  }
  return {
      Errc::Unsupported,
      fmt::format("the image needs {}, {}{}; use an image for this driver or a newer driver, or "
                  "set NVIDIA_DISABLE_REQUIRE=1 to try it anyway",
                  failing->text, here(*failing, machine, devices), others)};
}

Error unknown(std::string_view text) {
  return Error(Errc::Unsupported,
               fmt::format("the image needs {}{}, but the inventory does not have the value to "
                           "compare",
                           text.substr(0, kMaxQuotedExpressionBytes),
                           text.size() > kMaxQuotedExpressionBytes ? "..." : ""))
      .advise("run `gantry cdi refresh`, or set NVIDIA_DISABLE_REQUIRE=1");
}

Status check_one(std::string_view text, const Inventory& machine,
                 std::span<const SelectedDevice> devices) {
  if (text.size() > kMaxExpressionBytes) {
    return Error(Errc::Invalid, fmt::format("an NVIDIA_REQUIRE_* variable has more than {} bytes",
                                            kMaxExpressionBytes));
  }
  std::vector<std::vector<Condition>> alternatives;
  for (const auto word : words(text)) {
    std::vector<Condition> atoms;
    for (const auto piece : split(word, ',')) {
      if (piece.empty()) continue;
      GANTRY_TRY(const Condition atom, parse_condition(piece));
      atoms.push_back(atom);
    }
    if (!atoms.empty()) alternatives.push_back(std::move(atoms));
  }
  if (alternatives.empty()) return {};
  auto best = Tristate::No;
  for (const auto& atoms : alternatives) {
    auto all = Tristate::Yes;
    for (const auto& atom : atoms) all = std::min(all, judge(atom, machine, devices));
    best = std::max(best, all);
  }
  if (best == Tristate::Yes) return {};
  if (best == Tristate::Unknown) return unknown(text);
  return unmet(alternatives, text, machine, devices);
}

}  // namespace

std::string newest_cuda_for_driver(std::string_view driver_version) {
  const auto branch = parse_u64(driver_version.substr(0, driver_version.find('.')));
  if (!branch) return "";
  for (const auto& row : kBranches) {
    if (static_cast<std::uint64_t>(row.driver) == *branch) return std::string(row.cuda);
  }
  return "";
}

Status check_requirements(std::span<const std::string> requirements, const Inventory& machine,
                          std::span<const SelectedDevice> devices) {
  for (const auto& text : requirements) GANTRY_CHECK(check_one(text, machine, devices));
  return {};
}

}  // namespace gantry::plan
