// SPDX-License-Identifier: Apache-2.0
// What this process and the machine under it say.
#include "base/core/text.hpp"
#include "base/core/unix_time.hpp"
#include "install/preflight/facts.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>

namespace gantry::preflight {
namespace {

constexpr std::size_t kStatusLimit = std::size_t{64} << 10U;

Rights read_rights(const sys::Host& self, const sys::Host& host) {
  constexpr std::string_view kEffective = "CapEff:";
  Rights rights{.uid = ::geteuid()};
  const auto status = self.read("/proc/self/status", kStatusLimit).value_or("");
  for (const auto line : lines(status)) {
    if (line.starts_with(kEffective))
      rights.capabilities = parse_u64(trim(line.substr(kEffective.size())), 16).value_or(0);
  }
  // In the first user namespace every id is its own.
  const auto map = self.read("/proc/self/uid_map", kStatusLimit).value_or("");
  const auto words = split(trim(map), ' ');
  rights.first_user_namespace = map.empty() || (!words.empty() && words.back() == "4294967295");
  rights.in_pod = !host.is_live() || std::getenv("KUBERNETES_SERVICE_HOST") != nullptr ||
                  self.exists("/.dockerenv") || self.exists("/run/.containerenv");
  return rights;
}

std::optional<DiskFact> read_disk(const sys::Host& host, const std::string& path) {
  const auto fd = host.open(path, O_PATH);
  struct statvfs info {};
  if (!fd.ok() || ::fstatvfs(fd->get(), &info) != 0) return std::nullopt;
  return DiskFact{.path = path,
                  .mount = "",
                  .free_bytes = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize,
                  .read_only = (info.f_flag & ST_RDONLY) != 0,
                  .no_exec = (info.f_flag & ST_NOEXEC) != 0};
}

// Of the cgroup that this process sees as its root, as containers do.
std::optional<std::uint64_t> read_memory_limit(const sys::Host& self) {
  for (const auto* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const auto limit = parse_u64(self.read_value(path).value_or(""));
    // Without a limit the first version of cgroups says a number near 2^63.
    if (limit && *limit < std::uint64_t{1} << 60U) return limit;
  }
  return std::nullopt;
}

std::int64_t read_program_time() {
  struct stat info {};
  return ::stat("/proc/self/exe", &info) == 0 ? static_cast<std::int64_t>(info.st_mtime) : 0;
}

std::string read_machine() {
  struct utsname names {};
  return ::uname(&names) == 0 ? static_cast<const char*>(names.machine) : "";
}

std::vector<std::string> paths_of(const DriverRequest& request) {
  std::vector<std::string> paths{request.directory, std::string(kWorkDirectory), "/etc"};
  if (request.source == Source::Packages) paths.insert(paths.end(), {"/usr", "/boot"});
  return paths;
}

std::vector<std::string> files_of(const DriverRequest& request) {
  std::vector<std::string> files;
  for (const auto& path : {request.run_file, request.patch, request.modules, request.sign_key,
                           request.sign_certificate, request.gridd_conf, request.client_token}) {
    if (path.starts_with('/')) files.push_back(path);  // a key may also be a PKCS#11 URI
  }
  for (const auto& key : request.repository_keys) {
    if (key.starts_with('/')) files.push_back(key);  // else it is a fingerprint
  }
  return files;
}

}  // namespace

FactSources live_sources(const sys::Host& host, const DriverRequest& request) {
  FactSources sources{.now = unix_now(), .program_built = read_program_time()};
  sources.machine = read_machine();
  sources.kernel = request.kernel;
  sources.directory = request.directory;
  if (request.source == Source::Precompiled) sources.modules = request.modules;
  sources.modules_sha256 = request.modules_sha256;
  sources.paths = paths_of(request);
  sources.files = files_of(request);
  sources.disk = read_disk;
  if (const auto self = sys::Host::at("/"); self.ok()) {
    sources.rights = read_rights(*self, host);
    if (sources.rights.in_pod) sources.memory_limit = read_memory_limit(*self);
  }
  if (!host.is_live()) sources.toolchain_root = "/";
  return sources;
}

}  // namespace gantry::preflight
