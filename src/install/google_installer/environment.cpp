// SPDX-License-Identifier: Apache-2.0
#include "install/google_installer/environment.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "install/driver_package/checksum.hpp"
#include "install/driver_package/run_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gantry::google_installer {
namespace {

constexpr std::string_view kFileScheme = "file://";

Error invalid(std::string_view name, std::string_view value, std::string_view why) {
  return {Errc::Invalid, fmt::format("{}=`{}`: {}", name, printable(value.substr(0, 200)), why)};
}

// "/root/" and "/root" are the same directory; "/" stays.
Result<std::string> read_directory(const char* name, std::string value, std::string_view standard) {
  if (value.empty()) value = standard;
  while (value.size() > 1 && value.ends_with('/')) value.pop_back();
  const auto parts = split(value, '/');
  const bool climbs =
      std::any_of(parts.begin(), parts.end(), [](std::string_view part) { return part == ".."; });
  if (value.starts_with('/') && !climbs) return value;
  return invalid(name, value, "it must be an absolute path without `..`");
}

Result<bool> read_switch(const char* name, const std::string& value) {
  constexpr std::array<std::string_view, 3> kOn{"1", "true", "yes"};
  constexpr std::array<std::string_view, 4> kOff{"", "0", "false", "no"};
  if (std::find(kOn.begin(), kOn.end(), value) != kOn.end()) return true;
  if (std::find(kOff.begin(), kOff.end(), value) != kOff.end()) return false;
  return invalid(name, value, "it must be `true` or `false`");
}

Status check_version(const Environment& environment) {
  if (environment.version.empty() || driver_package::is_driver_version(environment.version))
    return {};
  return invalid("NVIDIA_DRIVER_VERSION", environment.version,
                 "it is not a version of the driver, such as 580.159.04");
}

// Below `above` the same path is below `machine` on the machine.
bool translate(std::string& path, const std::string& above, const std::string& machine) {
  if (above == "/") return true;
  if (!path.starts_with(above + "/")) return false;
  path = machine + path.substr(above.size());
  return true;
}

Result<std::string> path_on_machine(const Environment& environment) {
  auto path = environment.url.substr(kFileScheme.size());
  if (!path.starts_with('/'))
    return invalid("NVIDIA_DRIVER_DOWNLOAD_URL", environment.url, "write file:///PATH");
  if (translate(path, environment.container_directory, environment.host_directory)) return path;
  if (translate(path, environment.root, "")) return path;
  return invalid("NVIDIA_DRIVER_DOWNLOAD_URL", environment.url,
                 fmt::format("the file must be on the machine, below {} or {}", environment.root,
                             environment.container_directory));
}

}  // namespace

Result<Environment> read_environment(const std::function<std::string(const char* name)>& variable) {
  Environment read;
  const auto directory = [&](const char* name, std::string_view standard) {
    return read_directory(name, variable(name), standard);
  };
  read.version = variable("NVIDIA_DRIVER_VERSION");
  GANTRY_CHECK(check_version(read));
  read.url = variable("NVIDIA_DRIVER_DOWNLOAD_URL");
  GANTRY_TRY(read.host_directory, directory("NVIDIA_INSTALL_DIR_HOST", "/var/lib/nvidia"));
  GANTRY_TRY(read.root, directory("ROOT_MOUNT_DIR", "/root"));
  // On the machine itself nothing is mounted elsewhere.
  const auto seen = read.root == "/" ? read.host_directory : "/usr/local/nvidia";
  GANTRY_TRY(read.container_directory, directory("NVIDIA_INSTALL_DIR_CONTAINER", seen));
  const auto cache = variable("CACHE_FILE");
  if (!cache.empty() && cache != read.cache_file())
    return invalid("CACHE_FILE", cache, fmt::format("it is always {}", read.cache_file()));
  read.kernel = variable("KERNEL_VERSION");
  // Google's script asks only whether it is empty.
  read.overwrite = !variable("NVIDIA_INSTALLER_OVERWRITE").empty();
  const auto digest = variable("NVIDIA_DRIVER_SHA256");
  if (!digest.empty()) {
    GANTRY_TRY(read.sha256, driver_package::parse_sha256(digest).in("NVIDIA_DRIVER_SHA256"));
  }
  constexpr const char* kTrust = "NVIDIA_DRIVER_TRUST_DOWNLOAD_WITHOUT_DIGEST";
  GANTRY_TRY(read.trust_download_without_digest, read_switch(kTrust, variable(kTrust)));
  return read;
}

std::string archive_name(const Environment& environment) {
  return std::string(base_name(environment.url));
}

Status complete(preflight::DriverRequest& request, const Environment& environment) {
  request.as_google = true;
  if (request.version.empty()) request.version = environment.version;
  if (request.sha256.empty()) request.sha256 = environment.sha256;
  if (environment.trust_download_without_digest) request.trust_download_without_digest = true;
  if (!request.run_file.empty() || !request.url.empty()) return {};
  if (!environment.url.starts_with(kFileScheme)) {
    request.url = environment.url;
    return {};
  }
  GANTRY_TRY(request.run_file, path_on_machine(environment));
  return {};
}

}  // namespace gantry::google_installer
