// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/tree_internal.hpp"

#include <fmt/format.h>

namespace gantry::sim {
namespace {

std::string os_release(std::string_view id) {
  struct System {
    std::string_view id, pretty, version, like;
  };
  constexpr System kSystems[] = {{"debian", "Debian GNU/Linux 12 (bookworm)", "12", ""},
                                 {"ubuntu", "Ubuntu 22.04.5 LTS", "22.04", "debian"},
                                 {"ubuntu-24.04", "Ubuntu 24.04.3 LTS", "24.04", "debian"},
                                 {"ubuntu-18.04", "Ubuntu 18.04.5 LTS", "18.04", "debian"},
                                 {"ubuntu-16.04", "Ubuntu 16.04.3 LTS", "16.04", "debian"},
                                 {"sles", "SUSE Linux Enterprise Server 15 SP1", "15.1", "suse"}};
  for (const auto& system : kSystems) {
    if (system.id != id) continue;
    const auto name = system.id.substr(0, system.id.find('-'));
    return fmt::format("ID={}\nVERSION_ID=\"{}\"\nPRETTY_NAME=\"{}\"\n{}", name, system.version,
                       system.pretty,
                       system.like.empty() ? "" : fmt::format("ID_LIKE={}\n", system.like));
  }
  return fmt::format("ID={}\nPRETTY_NAME=\"{}\"\n", id, id);
}

}  // namespace

void write_etc(TreeWriter& out, const Machine& m) {
  const std::string system = m.os_release.empty() ? "debian" : m.os_release;
  out.file("/etc/os-release", os_release(system), 0644);
  out.file("/etc/hostname", m.hostname + "\n", 0644);
  out.file(
      "/etc/group",
      fmt::format("root:x:0:\ntty:x:5:\nvideo:x:{}:\nrender:x:109:\n", system == "sles" ? 33 : 44),
      0644);
  out.file("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n", 0644);
  if (system.starts_with("debian") || system.starts_with("ubuntu"))
    out.file("/etc/debian_version", "12.0\n", 0644);
  std::string conf;
  for (const auto& directory : m.ld_so_conf) conf += directory + "\n";
  out.file("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n", 0644);
  if (!conf.empty()) out.file("/etc/ld.so.conf.d/gantry-sim.conf", conf, 0644);
  for (const auto* name :
       {"/tmp", "/var/lib", "/run", "/root", "/usr/bin", "/usr/sbin", "/usr/share"})
    out.directory(name);
}

}  // namespace gantry::sim
