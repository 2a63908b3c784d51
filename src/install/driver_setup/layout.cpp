// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/layout.hpp"

#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver_setup {
namespace {

constexpr std::size_t kShownDigest = 12;
constexpr std::string_view kOpenEnd = "-open";

// Directories that have other files, or that a boot empties.
constexpr std::array<std::string_view, 28> kTakenDirectories{
    "/",         "/bin",       "/boot",          "/dev",     "/etc",       "/home",
    "/lib",      "/lib64",     "/lost+found",    "/media",   "/mnt",       "/opt",
    "/proc",     "/root",      "/run",           "/sbin",    "/srv",       "/sys",
    "/tmp",      "/usr",       "/usr/bin",       "/usr/lib", "/usr/lib64", "/usr/local",
    "/usr/sbin", "/usr/share", "/usr/local/lib", "/var"};
constexpr std::array<std::string_view, 6> kVolatileDirectories{"/dev/", "/proc/", "/run/",
                                                               "/sys/", "/tmp/",  "/var/run/"};

// The group of a directory such as /usr/local is one of administrators.
Status check_owner_of(const sys::Host& host, const std::string& path, const sys::FileInfo& root) {
  const auto info = host.info(path);
  if (!info.ok()) return {};  // it will be made
  const bool trusted = info->uid == 0 || info->uid == root.uid || info->uid == ::geteuid();
  const bool by_all = (info->mode & S_IWOTH) != 0 && (info->mode & S_ISVTX) == 0;
  if (trusted && !by_all) return {};
  const auto shown = host.outside(path);
  return Error(Errc::Denied, trusted ? fmt::format("every user can change {}", shown)
                                     : fmt::format("user {} can change {}", info->uid, shown))
      .advise(fmt::format("use another --directory, or: sudo chown root {0} && sudo chmod go-w {0}",
                          sys::shell_word(shown)));
}

Status check_owners(const sys::Host& host, std::string there) {
  GANTRY_TRY(const auto root, host.info("/"));
  GANTRY_TRY(there, host.resolve(there));
  for (; there.size() > 1; there = std::string(parent_directory(there)))
    GANTRY_CHECK(check_owner_of(host, there, root));
  return {};
}

bool is_hexadecimal(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

bool is_plain_path(std::string_view path) {
  if (!path.starts_with('/') || path.size() > 200) return false;
  for (const auto name : split(path.substr(1), '/')) {
    if (name.empty() || name == "." || name == "..") return false;
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
      return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
             c == '_' || c == '.' || c == '+';
    });
    if (!plain) return false;
  }
  return true;
}

}  // namespace

std::string version_name(std::string_view version, std::string_view digest,
                         preflight::Flavour flavour) {
  return fmt::format("{}-{}{}", version, digest.substr(0, kShownDigest),
                     flavour == preflight::Flavour::Open ? kOpenEnd : "");
}

bool is_version_name(std::string_view name) {
  if (name.ends_with(kOpenEnd)) name.remove_suffix(kOpenEnd.size());
  const auto dash = name.rfind('-');
  if (dash == std::string_view::npos || dash == 0) return false;
  const auto version = name.substr(0, dash);
  const auto digest = name.substr(dash + 1);
  const bool numbers =
      std::all_of(version.begin(), version.end(), [](char c) { return is_digit(c) || c == '.'; });
  return numbers && version.front() != '.' && version.back() != '.' &&
         digest.size() == kShownDigest && is_hexadecimal(digest);
}

std::string Layout::version(std::string_view name) const {
  return fmt::format("{}/{}", versions(), name);
}

std::string Layout::partial(std::string_view name) const {
  return fmt::format("{}/.{}.partial", versions(), name);
}

std::string Layout::file_list(std::string_view name) const {
  return version(name) + "/files.json";
}

std::string Layout::source(std::string_view name) const {
  return version(name) + "/source";
}

std::string Layout::modules(std::string_view name, std::string_view kernel) const {
  return fmt::format("{}/drivers/{}", version(name), kernel);
}

std::string Layout::shown(std::string_view part) const {
  return fmt::format("{}/{}", directory_, part);
}

Status check_directory(std::string_view directory) {
  if (!is_plain_path(directory)) {
    return Error(Errc::Invalid,
                 fmt::format("`{}` cannot be the directory of the driver: it must be an absolute "
                             "path of letters, digits, '.', '-', '_' and '+', without '..'",
                             directory))
        .advise("the usual one is --directory /usr/local/nvidia");
  }
  const bool taken = std::find(kTakenDirectories.begin(), kTakenDirectories.end(), directory) !=
                     kTakenDirectories.end();
  const bool is_volatile =
      std::any_of(kVolatileDirectories.begin(), kVolatileDirectories.end(),
                  [&](std::string_view above) { return directory.starts_with(above); });
  if (!taken && !is_volatile) return {};
  return Error(Errc::Invalid, fmt::format("{} cannot be the directory of the driver: {}", directory,
                                          taken ? "other software has its files there"
                                                : "its files are lost at a reboot"))
      .advise("the usual one is --directory /usr/local/nvidia");
}

Status check_trusted_place(const sys::Host& host, std::string_view path) {
  std::string there(path);
  while (there.size() > 1 && !host.exists(there)) there = std::string(parent_directory(there));
  return check_owners(host, std::move(there)).in("the driver's files are loaded as root");
}

Status check_trusted_program(const sys::Host& host, std::string_view path) {
  return host.exists(path) ? check_owners(host, std::string(path)) : Status();
}

}  // namespace gantry::driver_setup
