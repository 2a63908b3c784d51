// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/request.hpp"

#include "install/driver_package/run_header.hpp"

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
  return source == Source::Run || source == Source::Grid;
}

bool DriverRequest::downloads() const {
  if (source == Source::Precompiled) return run_file.empty();
  if (source == Source::NvidiaContainer) return false;  // the container does
  return source == Source::Packages || run_file.empty();
}

std::string version_of(const DriverRequest& request) {
  if (!request.version.empty()) return request.version;
  const auto name = driver_package::parse_run_name(
      request.run_file.empty() ? std::string_view(request.url) : request.run_file);
  return name.ok() ? name->version : "";
}

}  // namespace gantry::preflight
