// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/boot_files.hpp"

#include "base/sys/shell_command.hpp"
#include "install/driver_setup/layout.hpp"
#include "install/driver_setup/unit_template_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

namespace gantry::driver_setup {
namespace {

constexpr std::string_view kPackagedProgram = "/usr/bin/gantry";
constexpr std::string_view kUnitPath = "/etc/systemd/system/gantry-driver.service";
constexpr std::string_view kWantsPath =
    "/etc/systemd/system/multi-user.target.wants/gantry-driver.service";
constexpr std::string_view kPackagedUnit = "/usr/lib/systemd/system/gantry-driver.service";
constexpr unsigned kExecutable = 0755;

constexpr std::string_view kZyppPluginPath = "/usr/lib/zypp/plugins/commit/gantry-driver";
constexpr std::string_view kZyppPluginBody = R"(kernels() {
  for directory in /lib/modules/*/; do
    directory=${directory%/} headers=
    [ -d "$directory" ] || continue
    [ -e "$directory/build/Makefile" ] && headers=headers
    echo "${directory##*/} $headers"
  done
}
build() {
  if [ -d /run/systemd/system ]; then
    systemd-run --quiet --collect --unit=gantry-driver-build "$gantry" driver build --all
  else
    setsid "$gantry" driver build --all &
  fi
}
look() {
  while read -r kernel _; do
    [ -z "$kernel" ] || [ -d "/lib/modules/$kernel" ] ||
      "$gantry" driver build --kernel "$kernel" --forget
  done <<<"$before"
  ! kernels | grep -qvxF "$before" || build
}
before=$(kernels)
while IFS= read -r -d '' frame; do
  frame=${frame#$'\n'}
  case ${frame%%$'\n'*} in
    PLUGINEND) [ -x "$gantry" ] && look </dev/null >/dev/null 2>&1 ;;
    _DISCONNECT) printf 'ACK\nexit:0\n\n\0' && exit 0 ;;
  esac
  printf 'ACK\n\n\0'
done
)";

bool has_any(const sys::Host& host, std::initializer_list<std::string_view> paths) {
  return std::any_of(paths.begin(), paths.end(),
                     [&](std::string_view path) { return host.exists(path); });
}

// A hook that fails would stop the update of the kernel, so it always ends with 0 and says what is
// missing; the unit says it again at boot.
std::string hook(std::string_view program, std::string_view body) {
  return fmt::format(
      "#!/bin/sh\n"
      "# Written by `gantry driver install`; `gantry driver remove` removes it.\n"
      "gantry={}\n"
      "[ -x \"$gantry\" ] || exit 0\n"
      "{}"
      "exit 0\n",
      sys::shell_word(program), body);
}

// systemd.service(5): '%' begins a specifier, and a path with spaces stands in quotes.
std::string unit_word(std::string_view path) {
  std::string word;
  bool quoted = false;
  for (const char c : path) {
    if (c == '%' || c == '$') word += c;
    if (c == '"' || c == '\\') word += '\\';
    quoted = quoted || c == ' ' || c == '"' || c == '\\' || c == '\'' || c == ';';
    word += c;
  }
  return quoted ? fmt::format("\"{}\"", word) : word;
}

}  // namespace

std::string reason_against_program(const sys::Host& host, std::string_view program) {
  if (program.ends_with(" (deleted)")) return "its file was replaced or removed while it ran";
  for (const auto* lost : {"/tmp/", "/run/", "/dev/shm/"})
    if (program.starts_with(lost)) return "its directory is empty after a boot";
  const auto trusted = check_trusted_program(host, program);
  return trusted.ok() ? "" : trusted.error().cause();
}

std::string dpkg_hook(std::string_view program) {
  return hook(program,
              "[ -n \"$1\" ] || exit 0\n"
              "\"$gantry\" driver build --kernel \"$1\" --if-possible ||\n"
              "  echo \"gantry: no driver for $1: after a reboot into it the GPUs do not work\" "
              ">&2\n");
}

std::string dpkg_removal_hook(std::string_view program) {
  return hook(program,
              "[ -n \"$1\" ] || exit 0\n"
              "\"$gantry\" driver build --kernel \"$1\" --forget\n");
}

std::string kernel_install_hook(std::string_view program) {
  return hook(program,
              "[ -n \"$2\" ] || exit 0\n"
              "case $1 in\n"
              "  add) \"$gantry\" driver build --kernel \"$2\" --if-possible ||\n"
              "    echo \"gantry: no driver for $2: after a reboot into it the GPUs do not work\" "
              ">&2 ;;\n"
              "  remove) \"$gantry\" driver build --kernel \"$2\" --forget ;;\n"
              "esac\n");
}

// libzypp waits 30 s for an answer, and a build takes minutes: it goes on behind zypper.
std::string zypp_plugin(std::string_view program) {
  return fmt::format(
      "#!/bin/bash\n"
      "# Written by `gantry driver install`; `gantry driver remove` removes it.\n"
      "# zypper starts it when packages change, and speaks with it in frames that end with NUL.\n"
      "gantry={}\n"
      "{}",
      sys::shell_word(program), kZyppPluginBody);
}

std::string driver_unit(std::string_view program) {
  std::string text(driver_unit_template());
  const auto word = unit_word(program);
  for (auto at = text.find(kPackagedProgram); at != std::string::npos;
       at = text.find(kPackagedProgram, at + word.size()))
    text.replace(at, kPackagedProgram.size(), word);
  return text;
}

std::vector<BootFile> boot_files(const sys::Host& host, const std::string& program) {
  std::vector<BootFile> files;
  if (program.empty()) return files;
  if (has_any(host, {"/run/systemd/system", "/usr/lib/systemd/systemd", "/lib/systemd/systemd"})) {
    const bool packaged = host.exists(kPackagedUnit);
    if (!packaged)
      files.push_back({.path = std::string(kUnitPath), .content = driver_unit(program)});
    // Our own link instead of `systemctl enable`: it works in an image that is not running.
    files.push_back({.path = std::string(kWantsPath),
                     .link = std::string(packaged ? kPackagedUnit : kUnitPath)});
  }
  if (has_any(host, {"/usr/bin/dpkg", "/bin/dpkg"})) {
    files.push_back({.path = "/etc/kernel/postinst.d/gantry-driver",
                     .content = dpkg_hook(program),
                     .mode = kExecutable});
    files.push_back({.path = "/etc/kernel/header_postinst.d/gantry-driver",
                     .content = dpkg_hook(program),
                     .mode = kExecutable});
    files.push_back({.path = "/etc/kernel/postrm.d/gantry-driver",
                     .content = dpkg_removal_hook(program),
                     .mode = kExecutable});
  }
  if (has_any(host, {"/usr/bin/rpm", "/bin/rpm", "/usr/bin/zypper"})) {
    files.push_back({.path = "/etc/kernel/install.d/90-gantry-driver.install",
                     .content = kernel_install_hook(program),
                     .mode = kExecutable});
  }
  if (host.exists("/usr/bin/zypper"))
    files.push_back({.path = std::string(kZyppPluginPath),
                     .content = zypp_plugin(program),
                     .mode = kExecutable});
  return files;
}

}  // namespace gantry::driver_setup
