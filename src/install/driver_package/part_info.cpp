// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "install/driver_package/part_file_internal.hpp"

#include <fmt/format.h>

namespace gantry::driver_package {
namespace {

constexpr std::string_view kFormat = "gantry-part 1";
constexpr std::size_t kValue = 4096;

bool can_be_written(std::string_view value) {
  return value.size() <= kValue && printable(value) == value;
}

}  // namespace

std::string to_text(const PartInfo& info) {
  if (!can_be_written(info.url) || !can_be_written(info.validator)) return {};
  return fmt::format("{}\nurl {}\ntotal {}\nvalidator {}\nend\n", kFormat, info.url, info.total,
                     info.validator);
}

PartInfo parse_part_info(std::string_view text) {
  const auto all = lines(text);
  const auto value = [&](std::size_t line, std::string_view name) {
    const auto found = all[line];
    return found.starts_with(name) && can_be_written(found) ? found.substr(name.size())
                                                            : std::string_view();
  };
  if (all.size() != 5 || all[0] != kFormat || all[4] != "end") return {};
  const auto total = parse_u64(value(2, "total "));
  if (!total) return {};
  return {.url = std::string(value(1, "url ")),
          .validator = std::string(value(3, "validator ")),
          .total = *total};
}

}  // namespace gantry::driver_package
