// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/request.hpp"

#include "base/core/text.hpp"
#include "gpu/model/driver_version.hpp"

#include <array>
#include <utility>

namespace gantry::preflight {
namespace {

constexpr std::array kSources{
    std::pair(Source::Run, std::string_view("run")),
    std::pair(Source::Packages, std::string_view("packages")),
    std::pair(Source::Precompiled, std::string_view("precompiled")),
    std::pair(Source::NvidiaContainer, std::string_view("nvidia-container")),
    std::pair(Source::Grid, std::string_view("grid")),
};

// "550.54.15-grid" -> "550.54.15" and its kind. NVIDIA's archives for clouds are
// "535.161.07-grid-aws"; some have "-custom" or "-no-compat32" at the end.
std::optional<RunFileName> parse_version_part(std::string_view text) {
  const auto dash = text.find('-');
  const auto version = text.substr(0, dash);
  if (!model::is_driver_version(version)) return std::nullopt;
  RunFileName name{.machine = "", .version = std::string(version), .kind = {}};
  const auto rest = dash == std::string_view::npos ? "" : text.substr(dash);
  if (rest.starts_with("-grid")) name.kind = RunFileName::Kind::Grid;
  if (rest.starts_with("-vgpu-kvm") || rest.starts_with("-vgpu-host"))
    name.kind = RunFileName::Kind::VgpuHost;
  return name;
}

}  // namespace

std::string_view to_string(Source source) {
  for (const auto& [value, name] : kSources) {
    if (value == source) return name;
  }
  return "";
}

std::optional<Source> parse_source(std::string_view text) {
  for (const auto& [value, name] : kSources) {
    if (name == text) return value;
  }
  return std::nullopt;
}

bool DriverRequest::builds_modules() const {
  return source == Source::Run || source == Source::Grid || source == Source::NvidiaContainer;
}

bool DriverRequest::downloads() const {
  if (source == Source::Precompiled) return run_file.empty();
  return source == Source::Packages || run_file.empty();
}

std::optional<RunFileName> parse_run_file_name(std::string_view path) {
  auto name = base_name(path);
  name = name.substr(0, name.find_first_of("?#"));
  constexpr std::string_view kPrefix = "NVIDIA-Linux-";
  constexpr std::string_view kSuffix = ".run";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  const auto dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  auto parsed = parse_version_part(name.substr(dash + 1));
  if (parsed) parsed->machine = std::string(name.substr(0, dash));
  return parsed;
}

}  // namespace gantry::preflight
