// SPDX-License-Identifier: Apache-2.0
#include "gpu/procfs/version.hpp"

#include "base/core/text.hpp"
#include "gpu/model/driver_version.hpp"

namespace gantry::procfs {
namespace {

constexpr std::size_t kVersionLimit = std::size_t{64} << 10U;

std::string version_in(std::string_view line) {
  for (const auto word : split(line, ' ')) {
    if (model::is_driver_version(word)) return std::string(word);
  }
  return {};
}

}  // namespace

VersionFile parse_version_file(std::string_view text) {
  using enum model::ModuleFlavour;
  for (const auto line : lines(text)) {
    if (!line.starts_with("NVRM version:")) continue;
    return {.version = version_in(line),
            .flavour = contains(line, "Open Kernel Module") ? Open : Proprietary};
  }
  return {};
}

Result<VersionFile> read_version(const sys::Host& host) {
  GANTRY_TRY(const auto text, host.read(kVersionPath, kVersionLimit));
  auto found = parse_version_file(text);
  if (found.version.empty()) {
    found.version = host.read_value("/sys/module/nvidia/version").value_or("");
  }
  return found;
}

}  // namespace gantry::procfs
