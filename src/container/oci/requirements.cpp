// SPDX-License-Identifier: Apache-2.0
// Reads the image's requirements on the machine; src/container/plan checks them.
#include "base/core/text.hpp"
#include "container/oci/request_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gantry::oci {
namespace {

constexpr std::string_view kPrefix = "NVIDIA_REQUIRE_";
constexpr std::size_t kMaxRequirements = 64;

bool is_true(std::string_view text) {
  const auto word = to_lower(trim(text));
  return word == "1" || word == "t" || word == "true";
}

// "11.2.1" -> "cuda>=11.2"
std::string legacy_requirement(std::string_view cuda_version) {
  const auto parts = split(trim(cuda_version), '.');
  if (parts.empty() || !parse_u64(parts[0])) return {};
  const bool has_minor = parts.size() > 1 && parse_u64(parts[1]).has_value();
  return fmt::format("cuda>={}.{}", parts[0], has_minor ? parts[1] : std::string_view("0"));
}

// Each variable once, in the order of its first appearance, with its last value.
Result<std::vector<std::string_view>> values_of(const std::vector<std::string>& env) {
  std::vector<std::string_view> values;
  std::map<std::string_view, std::size_t> places;
  for (const std::string_view entry : env) {
    const auto name = variable_name(entry);
    if (!name.starts_with(kPrefix) || name == "NVIDIA_REQUIRE_JETPACK") continue;
    const auto [place, is_new] = places.emplace(name, values.size());
    if (is_new && values.size() == kMaxRequirements) {
      return Error(
          Errc::Invalid,
          fmt::format("the environment has more than {} variables {}*, but an image needs one "
                      "or two (NVIDIA_DISABLE_REQUIRE=true skips them)",
                      kMaxRequirements, kPrefix));
    }
    if (is_new) values.emplace_back();
    values[place->second] = trim(entry.substr(std::min(entry.size(), name.size() + 1)));
  }
  return values;
}

}  // namespace

Result<std::vector<std::string>> read_requirements(const Container& container,
                                                   const config::Settings& settings,
                                                   Decision& decision) {
  std::vector<std::string> result;
  if (settings.disable_require) {
    decision.reasons.emplace_back("requirements are not checked (disable-require = true)");
    return result;
  }
  if (is_true(container.variable("NVIDIA_DISABLE_REQUIRE").value_or(""))) {
    decision.reasons.emplace_back("requirements are not checked (NVIDIA_DISABLE_REQUIRE)");
    return result;
  }
  GANTRY_TRY(const auto values, values_of(container.env));
  for (const auto value : values) {
    if (value.empty() || std::find(result.begin(), result.end(), value) != result.end()) continue;
    result.emplace_back(value);
  }
  if (is_legacy_image(container)) {
    auto added = legacy_requirement(container.variable("CUDA_VERSION").value_or(""));
    if (!added.empty()) result.push_back(std::move(added));
  }
  return result;
}

}  // namespace gantry::oci
