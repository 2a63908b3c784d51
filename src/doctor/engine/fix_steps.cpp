// SPDX-License-Identifier: Apache-2.0
#include "doctor/engine/fix_steps.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gantry::doctor {
namespace {

Action program(std::vector<std::string> argv) {
  return RunProgram{std::move(argv), kBuildDeadline};
}

// Returns true if os-release names the distribution in ID or ID_LIKE.
bool like(std::string_view release, std::string_view name) {
  for (const auto line : lines(release)) {
    if ((line.starts_with("ID=") || line.starts_with("ID_LIKE=")) && contains(line, name)) {
      return true;
    }
  }
  return false;
}

// Debian's update-grub reads /etc/default/grub.d after /etc/default/grub.
constexpr const char* kGrubFile = "/etc/default/grub.d/90-gantry.cfg";

std::string grub_line(const std::string& argument) {
  return fmt::format("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {}\"", argument);
}

}  // namespace

void add(Steps& steps, Steps more) {
  for (auto& step : more) steps.push_back(std::move(step));
}

Steps rebuild_initramfs(const Facts& f) {
  if (f.installed("update-initramfs")) return {program({"update-initramfs", "-u"})};
  if (f.installed("dracut")) return {program({"dracut", "-f"})};
  return {};
}

Steps add_kernel_argument(const Facts& f, const std::string& argument) {
  if (f.installed("grubby")) {
    return {program({"grubby", "--update-kernel=ALL", "--args=" + argument})};
  }
  if (!f.installed("update-grub")) return {};
  const auto line = grub_line(argument);
  return {WriteFile{kGrubFile, line + "\n", line}, program({"update-grub"})};
}

std::string kernel_argument_command(const Facts& f, const std::string& argument) {
  const auto release = f.host().read("/etc/os-release", 65536).value_or("");
  if (f.installed("grubby") || like(release, "fedora") || like(release, "rhel")) {
    return fmt::format("sudo grubby --update-kernel=ALL --args=\"{}\" && sudo reboot", argument);
  }
  if (f.installed("update-grub") || like(release, "debian")) {
    return fmt::format("echo '{}' | sudo tee {} && sudo update-grub && sudo reboot",
                       grub_line(argument), kGrubFile);
  }
  if (like(release, "suse") || like(release, "sles")) {
    return fmt::format(
        "sudo sed -i 's/^GRUB_CMDLINE_LINUX_DEFAULT=\"/&{} /' /etc/default/grub && sudo "
        "grub2-mkconfig -o /boot/grub2/grub.cfg && sudo reboot",
        argument);
  }
  return fmt::format("add {} to the kernel's command line, then: sudo reboot", argument);
}

Steps install_package(const Facts& f, const std::string& name) {
  if (f.installed("apt-get")) return {program({"apt-get", "install", "-y", name})};
  if (f.installed("dnf")) return {program({"dnf", "install", "-y", name})};
  if (f.installed("zypper")) return {program({"zypper", "--non-interactive", "install", name})};
  return {};
}

std::string install_command(const Facts& f, std::string_view name) {
  struct Tool {
    const char* program;
    const char* command;
    const char* distribution;
  };
  constexpr std::array kTools{Tool{"apt-get", "apt", "debian"}, Tool{"dnf", "dnf", "fedora"},
                              Tool{"zypper", "zypper", "suse"}, Tool{nullptr, "dnf", "rhel"},
                              Tool{nullptr, "zypper", "sles"}};
  const auto release = f.host().read("/etc/os-release", 65536).value_or("");
  auto tool = std::find_if(kTools.begin(), kTools.end(), [&](const Tool& one) {
    return one.program != nullptr && f.installed(one.program);
  });
  if (tool == kTools.end()) {
    tool = std::find_if(kTools.begin(), kTools.end(),
                        [&](const Tool& one) { return like(release, one.distribution); });
  }
  return tool == kTools.end() ? "" : fmt::format("sudo {} install {}", tool->command, name);
}

Steps systemctl(const Facts& f, std::vector<std::string> verb, const std::string& service) {
  constexpr std::array kDirectories{"/etc/systemd/system", "/run/systemd/system",
                                    "/usr/lib/systemd/system", "/lib/systemd/system"};
  const bool known = std::any_of(kDirectories.begin(), kDirectories.end(), [&](const char* place) {
    return f.host().exists(fmt::format("{}/{}.service", place, service));
  });
  if (!known || !f.host().exists("/run/systemd/system")) return {};
  verb.insert(verb.begin(), "systemctl");
  verb.push_back(service);
  return {RunProgram{std::move(verb)}};
}

WriteFile blacklist(const std::string& path, std::string_view module) {
  return {path, fmt::format("blacklist {0}\noptions {0} modeset=0\n", module),
          fmt::format("blacklist {}", module)};
}

Steps rewrite_lines(const Facts& f, const std::string& path, std::string what,
                    const std::function<void(std::string&)>& edit) {
  const auto text = f.host().read(path, std::size_t{1} << 20);
  if (!text.ok()) return {};
  std::string content;
  bool changed = false;
  for (const auto line : lines(*text)) {
    std::string now(line);
    edit(now);
    changed = changed || now != line;
    content += now;
    content += '\n';
  }
  if (!changed) return {};
  return {WriteFile{path, std::move(content), std::move(what)}};
}

}  // namespace gantry::doctor
