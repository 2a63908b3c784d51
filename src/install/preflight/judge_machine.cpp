// SPDX-License-Identifier: Apache-2.0
// Rights, disks, memory, C library, processor.
#include "base/core/text.hpp"
#include "install/preflight/judge_internal.hpp"

#include <linux/capability.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace gantry::preflight {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

void judge_rights(Judgement& j) {
  const auto& rights = j.facts.rights;
  if (rights.uid != 0) {
    j.block("not-root", {.sentence = "only root can install a driver",
                         .remedy = "run the command with sudo; in a pod: "
                                   "runAsUser: 0"});
    return;
  }
  if (!rights.first_user_namespace) {
    j.block("user-namespace",
            {.sentence = "this process is root of a user namespace only",
             .cause = "The kernel takes modules from the first user namespace only, whatever the "
                      "capabilities.",
             .remedy = "in a pod: hostUsers: true; not in a rootless container"});
    return;
  }
  struct Needed {
    unsigned number;
    std::string_view name;
  };
  constexpr std::array kNeeded{
      Needed{CAP_SYS_MODULE, "SYS_MODULE (to load the modules)"},
      Needed{CAP_MKNOD, "MKNOD (to make device nodes)"},
      Needed{CAP_DAC_OVERRIDE, "DAC_OVERRIDE (to write the host's files)"}};
  std::vector<std::string_view> missing;
  for (const auto& [number, name] : kNeeded) {
    if (!rights.has(number)) missing.push_back(name);
  }
  if (missing.empty()) return;
  j.block("capability-missing",
          {.sentence = fmt::format("missing capabilit{}: {}", missing.size() == 1 ? "y" : "ies",
                                   fmt::join(missing, ", ")),
           .remedy = "in a pod: securityContext.privileged: true, in a namespace with the label "
                     "pod-security.kubernetes.io/enforce=privileged; with docker: --privileged"});
}

// How much each place gets, as a multiple of the archive: NVIDIA's archives grow to three or four
// times their size when they are unpacked, building takes about as much as the archive again, and
// so does the download or the copy of a local archive.
constexpr std::uint64_t kUsualArchive = 400 * kMiB;
constexpr std::uint64_t kMargin = 16 * kMiB;

struct Need {
  std::string path;
  std::uint64_t bytes;
};

// nullopt: it is not known before the download.
std::optional<std::uint64_t> archive_bytes(const Judgement& j) {
  if (j.request.run_file.empty()) return std::nullopt;
  const auto* file = j.facts.file(j.request.run_file);
  return file != nullptr && file->exists ? std::optional(file->bytes) : std::nullopt;
}

std::vector<Need> needs_of(const Judgement& j) {
  const auto archive = archive_bytes(j).value_or(kUsualArchive);
  if (j.request.source == Source::Packages) return {{"/usr", 5 * archive + kMargin}};
  if (j.request.source == Source::NvidiaContainer) return {};
  return {{j.request.directory, 4 * archive + kMargin},
          {std::string(kWorkDirectory), 6 * archive + kMargin}};
}

// Two places on one file system need their sum.
void judge_space(Judgement& j) {
  struct Sum {
    std::uint64_t bytes = 0;
    const DiskFact* disk = nullptr;
  };
  std::map<std::string, Sum> sums;
  for (const auto& [path, bytes] : needs_of(j)) {
    const auto* disk = j.facts.disk(path);
    if (disk == nullptr || !disk->free_bytes) continue;
    auto& sum = sums[disk->mount.empty() ? path : disk->mount];
    sum.bytes += bytes;
    sum.disk = disk;
  }
  for (const auto& [mount, sum] : sums) {
    if (*sum.disk->free_bytes >= sum.bytes) continue;
    const bool known = archive_bytes(j).has_value();
    const Words words{
        .sentence = fmt::format(
            "{} has {} free, and the installation {} {}", mount, human_bytes(*sum.disk->free_bytes),
            known ? "needs" : "of an archive of the usual size needs", human_bytes(sum.bytes)),
        .remedy = "make room, or choose another --directory"};
    j.add(known ? Severity::Blocks : Severity::Warns, "disk-full", words);
  }
}

void judge_disks(Judgement& j) {
  for (const auto& disk : j.facts.disks) {
    if (!disk.read_only) continue;
    if (disk.path == "/etc") {
      j.warn("etc-read-only",
             {.sentence = "/etc cannot be written to",
              .cause = "The loader's cache is not updated: programs of the host find the libraries "
                       "only with LD_LIBRARY_PATH. Containers are not concerned."});
      continue;
    }
    const bool packages = j.request.source == Source::Packages;
    j.block(
        "directory-read-only",
        {.sentence = fmt::format("{} is on a file system that cannot be written to{}", disk.path,
                                 disk.mount.empty() ? "" : fmt::format(" ({})", disk.mount)),
         .remedy = packages ? "use --source run with a --directory that can be written to"
                            : "choose a --directory that can be written to, such as "
                              "/home/kubernetes/bin/nvidia or /var/lib/nvidia"});
  }
  const auto* directory = j.facts.disk(j.request.directory);
  if (directory != nullptr && directory->no_exec && j.request.source != Source::Packages) {
    j.block("directory-no-exec",
            {.sentence = fmt::format(
                 "{} is on a file system mounted with noexec{}", j.request.directory,
                 directory->mount.empty() ? "" : fmt::format(" ({})", directory->mount)),
             .cause = "nvidia-smi and the libraries could not be used from there.",
             .remedy = directory->mount.empty()
                           ? std::string("choose another --directory")
                           : fmt::format("sudo mount -o remount,exec {}, or choose another "
                                         "--directory",
                                         directory->mount)});
  }
  judge_space(j);
}

void judge_memory(Judgement& j) {
  constexpr std::uint64_t kLeast = 192 * kMiB;
  constexpr std::uint64_t kComfortable = 768 * kMiB;
  if (!j.request.builds_modules() || !j.facts.memory_available) return;
  const auto available = *j.facts.memory_available;
  if (available >= kComfortable) return;
  const Words words{
      .sentence = fmt::format("{} of memory are available, and building the modules takes about {}",
                              human_bytes(available), human_bytes(kComfortable)),
      .cause = "The kernel may kill the compiler.",
      .remedy = j.facts.rights.in_pod ? "raise the memory limit of the pod, or use --source "
                                        "precompiled"
                                      : "free memory, or use --source precompiled"};
  j.add(available < kLeast ? Severity::Blocks : Severity::Warns, "memory-low", words);
}

// "2.9" is older than "2.17".
bool older_version(std::string_view a, std::string_view b) {
  const auto first = split(a, '.');
  const auto second = split(b, '.');
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    const auto x = i < first.size() ? parse_u64(first[i]).value_or(0) : 0;
    const auto y = i < second.size() ? parse_u64(second[i]).value_or(0) : 0;
    if (x != y) return x < y;
  }
  return false;
}

void judge_libc(Judgement& j) {
  constexpr std::string_view kOldest = "2.17";  // what gantry-nvml needs
  // The oldest distributions that NVIDIA tests branches from 560 on with. Not verified.
  constexpr std::string_view kOldestOfNew = "2.28";
  constexpr unsigned kNew = 560;
  const auto& glibc = j.facts.glibc;
  if (glibc.empty()) {
    if (!j.facts.musl) return;
    j.block("no-glibc",
            {.sentence = "this machine has musl and no glibc",
             .cause = "NVIDIA's libraries and nvidia-smi are built for glibc.",
             .remedy = "use NVIDIA's driver container (--source nvidia-container), which has its "
                       "own"});
    return;
  }
  if (older_version(glibc, kOldest)) {
    j.block("glibc-old", {.sentence = fmt::format(
                              "glibc {} is too old; {} is the oldest that works", glibc, kOldest)});
  } else if (j.version && j.version->branch >= kNew && older_version(glibc, kOldestOfNew)) {
    j.warn("glibc-old", {.sentence = fmt::format("glibc {} is older than that of the systems which "
                                                 "branch {} is made for ({})",
                                                 glibc, j.version->branch, kOldestOfNew)});
  }
}

}  // namespace

void judge_machine(Judgement& judgement) {
  const auto& machine = judgement.facts.machine;
  if (!machine.empty() && machine != "x86_64" && machine != "aarch64") {
    judgement.block("cpu-unsupported",
                    {.sentence = fmt::format("there is no driver for {} processors", machine)});
  }
  judge_rights(judgement);
  judge_disks(judgement);
  judge_memory(judgement);
  judge_libc(judgement);
}

}  // namespace gantry::preflight
