// SPDX-License-Identifier: Apache-2.0
#include "base/core/nearest.hpp"
#include "base/core/printable.hpp"
#include "gpu/mig/config_reader_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::mig {

Error wrong_value(const yaml::Value& at, std::string_view text) {
  return {Errc::Invalid, fmt::format("{}: {}", at.where(), text)};
}

Status only_fields(const yaml::Value& map, std::string_view what,
                   const std::vector<std::string>& known) {
  for (const auto& [key, value] : map.entries) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const auto near = nearest_name(key.substr(0, 64), known);
    return wrong_value(value,
                       fmt::format("{} has no field `{}`{}", what, printable(key.substr(0, 64)),
                                   near.empty() ? "" : fmt::format("; did you mean `{}`?", near)));
  }
  return {};
}

Result<yaml::Value> read_v1(std::string_view text, std::string_view file) {
  const yaml::Limits limits{.aliases = yaml::AliasPolicy::Copy, .tags = yaml::TagPolicy::Ignore};
  GANTRY_TRY(auto root, yaml::parse(text, file, limits));
  if (root.kind != yaml::Value::Kind::Map) return wrong_value(root, "the file must be a map");
  const auto* version = root.find("version");
  if (version == nullptr) {
    return Error(Errc::Invalid, fmt::format("{}: `version` is missing", file))
        .advise("the first line must be `version: v1`");
  }
  if (version->kind != yaml::Value::Kind::Scalar || version->text != "v1") {
    return wrong_value(*version, fmt::format("version `{}` is not supported, only v1",
                                             printable(version->text.substr(0, 64))));
  }
  return root;
}

}  // namespace gantry::mig
