// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "container/engines/containerd_internal.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::engines {
namespace {

struct KnownInstall {
  Distribution distribution;
  std::string_view sign;  // a path that exists if the distribution is installed
  std::string_view main;
  std::string_view drop_in;
  std::string_view program;
  std::array<std::string_view, 3> restart;
};

constexpr KnownInstall kKnownInstalls[] = {
    {Distribution::K3s,
     "/var/lib/rancher/k3s/agent/etc/containerd",
     "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
     "/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.d/99-nvidia.toml",
     "/var/lib/rancher/k3s/data/current/bin/containerd",
     {"systemctl", "restart", "k3s"}},
    {Distribution::Rke2,
     "/var/lib/rancher/rke2/agent/etc/containerd",
     "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
     "/var/lib/rancher/rke2/agent/etc/containerd/config-v3.toml.d/99-nvidia.toml",
     "/var/lib/rancher/rke2/bin/containerd",
     {"systemctl", "restart", "rke2-server"}},
    {Distribution::Microk8s,
     "/var/snap/microk8s/current/args/containerd-template.toml",
     "/var/snap/microk8s/current/args/containerd-template.toml",
     "",
     "/snap/microk8s/current/bin/containerd",
     {"snap", "restart", "microk8s.daemon-containerd"}},
    {Distribution::K0s,
     "/etc/k0s",
     "/etc/k0s/containerd.toml",
     "/etc/k0s/containerd.d/99-nvidia.toml",
     "/var/lib/k0s/bin/containerd",
     {"systemctl", "restart", "k0sworker"}},
    {Distribution::Plain,
     "/etc/containerd/config.toml",
     "/etc/containerd/config.toml",
     "/etc/containerd/conf.d/99-nvidia.toml",
     "containerd",
     {"systemctl", "restart", "containerd"}},
};

ContainerdInstall to_install(const KnownInstall& known) {
  return {.distribution = known.distribution,
          .main = std::string(known.main),
          .drop_in = std::string(known.drop_in),
          .program = std::string(known.program),
          .restart = {known.restart.begin(), known.restart.end()}};
}

const KnownInstall& of(Distribution distribution) {
  for (const auto& known : kKnownInstalls) {
    if (known.distribution == distribution) return known;
  }
  return kKnownInstalls[std::size(kKnownInstalls) - 1];
}

// If --config names a distribution's own file, that distribution is selected.
std::optional<Distribution> owner_of(std::string_view config) {
  if (contains(config, "/rancher/k3s/")) return Distribution::K3s;
  if (contains(config, "/rancher/rke2/")) return Distribution::Rke2;
  if (contains(config, "/microk8s/")) return Distribution::Microk8s;
  if (config.starts_with("/etc/k0s/")) return Distribution::K0s;
  return std::nullopt;
}

// RKE2 and K3s have different units on servers and agents.
void correct_unit(const sys::Host& host, ContainerdInstall& place) {
  const auto has_unit = [&](const std::string& name) {
    return host.exists("/etc/systemd/system/" + name + ".service") ||
           host.exists("/usr/local/lib/systemd/system/" + name + ".service") ||
           host.exists("/usr/lib/systemd/system/" + name + ".service");
  };
  for (const auto& [usual, other] :
       {std::pair{"k3s", "k3s-agent"}, std::pair{"rke2-server", "rke2-agent"},
        std::pair{"k0sworker", "k0scontroller"}}) {
    if (place.restart.back() == usual && !has_unit(usual) && has_unit(other)) {
      place.restart.back() = other;
    }
  }
}

}  // namespace

Result<ContainerdInstall> find_containerd(const sys::Host& host, const EngineOptions& options) {
  auto wanted = options.distribution;
  if (wanted == Distribution::Auto && !options.config.empty()) {
    wanted = owner_of(options.config).value_or(Distribution::Plain);
  }
  if (wanted == Distribution::Auto) {
    std::string names;
    for (const auto& known : kKnownInstalls) {
      if (!host.exists(known.sign)) continue;
      if (wanted != Distribution::Auto) {
        return Error(Errc::Invalid,
                     fmt::format("there are several containerds here: {} and {}; choose one with "
                                 "--distribution={}",
                                 names, to_string(known.distribution), names));
      }
      wanted = known.distribution;
      names = to_string(wanted);
    }
  }
  auto place = to_install(of(wanted));
  if (!options.config.empty()) place.main = options.config;
  if (!options.executable.empty()) place.program = options.executable;
  // The snap's containerd needs the content of its template: we extend it but never create it.
  if (place.distribution == Distribution::Microk8s && !host.exists(place.main)) {
    return Error(Errc::NotFound,
                 fmt::format("{} does not exist, so the runtime cannot be added to it; is the "
                             "snap microk8s installed? Check with `snap list microk8s`",
                             place.main));
  }
  correct_unit(host, place);
  return place;
}

std::optional<ProgramVersion> program_version(const EngineOptions& options,
                                              const std::string& program) {
  if (!options.run) return std::nullopt;
  const auto answer = options.run({program, "--version"});
  if (!answer.ok()) return std::nullopt;
  // "containerd github.com/containerd/containerd/v2 v2.1.4 HASH", Debian: "... 1.6.20~ds1 ..."
  for (auto word : split(trim(*answer), ' ')) {
    if (word.starts_with('v')) word.remove_prefix(1);
    const auto parts = split(word, '.');
    if (parts.size() < 3) continue;
    const auto major = parse_u64(parts[0]);
    const auto minor = parse_u64(parts[1]);
    if (major && minor) return ProgramVersion{*major, *minor};
  }
  return std::nullopt;
}

}  // namespace gantry::engines
