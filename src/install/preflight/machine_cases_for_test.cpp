// SPDX-License-Identifier: Apache-2.0
#include "install/preflight/host_for_test.hpp"

namespace gantry::preflight {
namespace {

using enum Severity;

constexpr std::int64_t k2040 = 2'209'000'000;
constexpr std::int64_t kYear = 31'556'952;

std::function<std::optional<DiskFact>(const sys::Host&, const std::string&)> disk(DiskFact fact) {
  return [fact](const sys::Host&, const std::string&) { return fact; };
}

constexpr std::uint64_t kPlenty = std::uint64_t{50} << 30U;

void libc(TestHost& host, std::string_view version) {
  host.file("/lib/x86_64-linux-gnu/libc.so.6",
            "GNU C Library (GNU libc) stable release version " + std::string(version) + ".\n");
}

}  // namespace

std::vector<FindingCase> machine_cases() {
  return {
      {"cpu-unsupported", Blocks, "there is no driver for riscv64 processors",
       [](TestHost& host) { host.sources.machine = "riscv64"; }},
      {"not-root", Blocks, "sudo", [](TestHost& host) { host.sources.rights.uid = 1000; }},
      {"user-namespace", Blocks, "hostUsers: true",
       [](TestHost& host) { host.sources.rights.first_user_namespace = false; }},
      {"capability-missing", Blocks,
       "missing capabilities: SYS_MODULE (to load the modules), MKNOD",
       [](TestHost& host) { host.sources.rights.capabilities = 0xa80425fb & ~(1U << 27U); }},
      {"disk-full", Blocks, "/ has 1.0 MiB free",
       [](TestHost& host) { host.sources.disk = disk({.free_bytes = std::uint64_t{1} << 20U}); }},
      {"disk-full", Warns, "the installation of an archive of the usual size needs",
       [](TestHost& host) {
         host.sources.disk = disk({.free_bytes = std::uint64_t{1} << 20U});
         host.request.run_file.clear();
         host.request.sha256 = std::string(64, '0');
       }},
      {"directory-read-only", Blocks,
       "/usr/local/nvidia is on a file system that cannot be written",
       [](TestHost& host) {
         host.sources.disk = disk({.free_bytes = kPlenty, .read_only = true});
       }},
      {"directory-no-exec", Blocks, "sudo mount -o remount,exec /",
       [](TestHost& host) { host.sources.disk = disk({.free_bytes = kPlenty, .no_exec = true}); }},
      {"etc-read-only", Warns, "/etc cannot be written to",
       [](TestHost& host) {
         host.sources.disk = [](const sys::Host&, const std::string& path) {
           return DiskFact{.free_bytes = kPlenty, .read_only = path == "/etc"};
         };
       }},
      {"memory-low", Warns, "building the modules takes about 768.0 MiB",
       [](TestHost& host) { host.file("/proc/meminfo", "MemAvailable: 400000 kB\n"); }},
      {"memory-low", Blocks, "raise the memory limit of the pod",
       [](TestHost& host) {
         host.sources.memory_limit = std::uint64_t{128} << 20U;
         host.sources.rights.in_pod = true;
       }},
      {"no-glibc", Blocks, "musl",
       [](TestHost& host) {
         host.remove("/lib/x86_64-linux-gnu/libc.so.6").file("/lib/ld-musl-x86_64.so.1", "");
       }},
      {"glibc-old", Blocks, "glibc 2.12 is too old", [](TestHost& host) { libc(host, "2.12"); }},
      {"glibc-old", Warns, "glibc 2.17 is older than that of the systems",
       [](TestHost& host) { libc(host, "2.17"); }},
      {"clock-behind", Blocks, "the clock is behind by at least 56 years",
       [](TestHost& host) {
         host.sources.now = 60;
         host.request.run_file.clear();
         host.request.sha256 = std::string(64, '0');
       }},
      {"clock-behind", Warns, "it says 1970-01-01 00:01 UTC, but",
       [](TestHost& host) { host.sources.now = 60; }},
      {"clock-ahead", Warns, "the clock is probably ahead: it says 2040-01-01",
       [](TestHost& host) { host.sources.now = k2040; }},
      {"clock-uncertain", Warns, "/var/lib/dpkg is of 2031-11",
       [](TestHost& host) { host.changed_at("/var/lib/dpkg", host.sources.now + 5 * kYear); }},
  };
}

}  // namespace gantry::preflight
