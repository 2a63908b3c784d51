// SPDX-License-Identifier: Apache-2.0
#include "container/plan/capabilities.hpp"

#include "base/core/text.hpp"
#include "gpu/model/enum_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::plan {

std::vector<model::Capability> all_capabilities() {
  using enum model::Capability;
  return {Compute, Utility, Video, Graphics, Display, Ngx, Compat32};
}

std::vector<model::Capability> specification_capabilities() {
  using enum model::Capability;
  return {Compute, Utility, Video, Graphics, Display, Ngx};
}

Result<std::vector<model::Capability>> parse_capabilities(std::string_view text) {
  using model::Capability;
  std::vector<Capability> found;
  for (const auto piece : split(text, ',')) {
    const auto word = trim(piece);
    if (word.empty()) continue;
    if (word == "all") return all_capabilities();
    const auto capability = model::parse_enum<Capability>(word);
    if (!capability) {
      return Error(Errc::Invalid,
                   fmt::format("there is no driver capability \"{}\"; capabilities are {} and all",
                               word, fmt::join(model::kEnumNames<Capability>, ", ")));
    }
    if (std::find(found.begin(), found.end(), *capability) == found.end())
      found.push_back(*capability);
  }
  if (found.empty()) found = {Capability::Utility, Capability::Compute};
  return found;
}

}  // namespace gantry::plan
