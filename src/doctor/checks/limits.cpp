// SPDX-License-Identifier: Apache-2.0
// Disk space and limits that GPU programs need.
#include "base/core/bytes.hpp"
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gantry::doctor {
namespace {

// The soft limit of a line such as "Max locked memory   8388608   8388608   bytes".
std::optional<std::string> soft_limit(const Facts& f, std::string_view name) {
  const auto text = f.host().read("/proc/self/limits", 65536).value_or("");
  for (auto line : lines(text)) {
    if (!line.starts_with(name)) continue;
    for (auto word : split(line.substr(name.size()), ' ')) {
      if (!word.empty()) return std::string(word);
    }
  }
  return std::nullopt;
}

Finding judge_memlock(const Facts& f) {
  const auto devices = f.host().list("/sys/class/infiniband");
  if (!devices.ok() || devices->empty()) return skip("no RDMA device: nothing needs locked memory");
  const auto limit = soft_limit(f, "Max locked memory");
  if (!limit) return skip("the limit cannot be read");
  const std::vector<Evidence> read{{"/proc/self/limits", "Max locked memory " + *limit}};
  const auto bytes = parse_u64(*limit);
  if (bytes && *bytes < 64 * kMiB) {
    return warn(fmt::format("only {} of memory may be locked", human_bytes(*bytes)), read);
  }
  return ok("enough memory may be locked for RDMA", read);
}

Finding judge_address_space(const Facts& f) {
  const auto limit = soft_limit(f, "Max address space");
  if (!limit) return skip("the limit cannot be read");
  const std::vector<Evidence> read{{"/proc/self/limits", "Max address space " + *limit}};
  if (*limit == "unlimited") return ok("the address space is not limited", read);
  return warn("the address space is limited: CUDA cannot reserve what it needs", read);
}

Finding judge_overcommit(const Facts& f) {
  const auto mode = f.value("/proc/sys/vm/overcommit_memory");
  if (!mode) return skip("vm.overcommit_memory cannot be read");
  const std::vector<Evidence> read{{"/proc/sys/vm/overcommit_memory", *mode}};
  if (*mode != "2") return ok("programs may reserve more memory than the machine has", read);
  return warn("programs may not reserve more memory than the machine has", read);
}

Steps fix_overcommit(const Facts&) {
  return {WriteValue{"/proc/sys/vm/overcommit_memory", "0"}};
}

// The option "size=65536k" of a tmpfs; the default is half of the memory, which is enough.
std::optional<std::uint64_t> tmpfs_size(const MountEntry& mount) {
  for (const auto& option : mount.options) {
    if (!option.starts_with("size=")) continue;
    auto text = std::string_view(option).substr(5);
    std::uint64_t unit = 1;
    if (text.ends_with('k')) unit = 1024;
    if (text.ends_with('m')) unit = kMiB;
    if (text.ends_with('g')) unit = kGiB;
    if (unit != 1) text.remove_suffix(1);
    const auto number = parse_u64(text);
    if (number && *number < (std::uint64_t{1} << 34)) return *number * unit;
  }
  return std::nullopt;
}

Finding judge_shm(const Facts& f) {
  const auto* mount = f.mount_of("/dev/shm");
  if (mount == nullptr || mount->point != "/dev/shm") return skip("/dev/shm is not mounted here");
  const auto size = tmpfs_size(*mount);
  const std::vector<Evidence> read{
      {"/proc/mounts", fmt::format("/dev/shm {}", size ? human_bytes(*size) : "half of memory")}};
  if (size && *size < kGiB) {
    return warn(fmt::format("/dev/shm has only {}", human_bytes(*size)), read);
  }
  return ok("/dev/shm is large enough for NCCL and data loaders", read);
}

Steps fix_shm(const Facts&) {
  return {RunProgram{{"mount", "-o", "remount,size=50%", "/dev/shm"}}};
}

Finding judge_disk(const Facts& f) {
  struct Place {
    std::string path;
    std::uint64_t least;
  };
  Tally tally;
  for (const auto& place : {Place{"/var/lib", 2 * kGiB}, Place{"/run", 16 * kMiB}}) {
    const auto bytes = f.free_bytes(place.path);
    if (!bytes) continue;
    Evidence read{place.path, human_bytes(*bytes) + " free"};
    if (*bytes >= place.least) {
      tally.good(std::move(read));
    } else {
      tally.found(fmt::format("{} has {} free, but needs {}", place.path, human_bytes(*bytes),
                              human_bytes(place.least)),
                  std::move(read), place.path);
    }
  }
  if (tally.empty()) return skip("the free space is not known");
  if (!tally.any_bad()) return ok("there is enough space for driver files and state", tally.well);
  return warn(tally.who(), tally.bad).advise(tally.command("sudo du -xhd1 @ | sort -h | tail"));
}

// Mount points below which the driver's files cannot be executed or mapped.
std::vector<const MountEntry*> noexec_mounts(const Facts& f) {
  std::vector<std::string> places{f.inventory().driver.library_directory};
  for (const auto& file : f.inventory().files) {
    if (file.kind == model::DriverFileKind::Binary) places.push_back(file.path);
  }
  if (f.host().exists("/run/nvidia/driver")) places.emplace_back("/run/nvidia/driver");
  std::vector<const MountEntry*> found;
  for (const auto& place : places) {
    const auto* mount = place.empty() ? nullptr : f.mount_of(place);
    if (mount == nullptr || !mount->has("noexec")) continue;
    if (std::find(found.begin(), found.end(), mount) == found.end()) found.push_back(mount);
  }
  return found;
}

Finding judge_noexec(const Facts& f) {
  if (f.mounts().empty()) return skip("mounts are not known");
  if (f.inventory().files.empty() && !f.host().exists("/run/nvidia/driver")) {
    return skip("no driver files were found");
  }
  Tally tally;
  for (const auto* mount : noexec_mounts(f)) {
    tally.found(mount->point, {"/proc/mounts",
                               fmt::format("{} {}", mount->point, fmt::join(mount->options, ","))});
  }
  if (!tally.any_bad()) {
    return ok("driver files may be executed", {{"/proc/mounts", "no noexec below the driver"}});
  }
  return fail(fmt::format("driver files are on a file system mounted noexec: {}", tally.who()),
              tally.bad)
      .advise(tally.command("sudo mount -o remount,exec @"));
}

Steps fix_noexec(const Facts& f) {
  Steps steps;
  for (const auto* mount : noexec_mounts(f)) {
    steps.emplace_back(RunProgram{{"mount", "-o", "remount,exec", mount->point}});
  }
  return steps;
}

// Takes effect for sessions that start afterwards.
Steps raise_limit(const std::string& what) {
  const auto content = fmt::format("* - {0} unlimited\nroot - {0} unlimited\n", what);
  return {WriteFile{fmt::format("/etc/security/limits.d/90-gantry-{}.conf", what), content,
                    fmt::format("{} unlimited for every user", what)}};
}
Steps fix_memlock(const Facts&) {
  return raise_limit("memlock");
}
Steps fix_address_space(const Facts&) {
  return raise_limit("as");
}

constexpr Check kLimitsChecks[] = {
    {.id = "limit.memlock",
     .reference = "H36",
     .area = Area::Userland,
     .fix_class = FixClass::OnRequest,
     .title = "enough memory may be locked for RDMA",
     .reads = "/proc/self/limits, /sys/class/infiniband",
     .cause = "The default limit of 64 KiB or 8 MiB applies; RDMA registration fails with ENOMEM.",
     .remedy = "ulimit -l unlimited; containers: --ulimit memlock=-1",
     .judge = judge_memlock,
     .fix = fix_memlock,
     .afterwards = "log in again; engines started by systemd: LimitMEMLOCK=infinity in their unit"},
    {.id = "limit.address-space",
     .reference = "H36",
     .area = Area::Userland,
     .fix_class = FixClass::OnRequest,
     .title = "the address space is not limited",
     .reads = "/proc/self/limits",
     .cause =
         "A limit from ulimit -v or a batch system. CUDA reserves address space as large as all "
         "memory of host and GPUs and fails with \"out of memory\".",
     .remedy = "ulimit -v unlimited",
     .judge = judge_address_space,
     .fix = fix_address_space,
     .afterwards = "log in again"},
    {.id = "limit.overcommit",
     .reference = "H36",
     .area = Area::Userland,
     .fix_class = FixClass::OnRequest,
     .title = "programs may reserve more memory than the machine has",
     .reads = "/proc/sys/vm/overcommit_memory",
     .cause = "vm.overcommit_memory is 2: CUDA's and NCCL's large reservations are refused.",
     .remedy = "sudo sysctl vm.overcommit_memory=0",
     .judge = judge_overcommit,
     .fix = fix_overcommit},
    {.id = "limit.shm",
     .reference = "C9",
     .area = Area::Userland,
     .fix_class = FixClass::OnRequest,
     .title = "/dev/shm is large enough",
     .reads = "/proc/mounts",
     .cause = "Containers get 64 MiB by default; NCCL and data loaders end with a bus error.",
     .remedy = "sudo mount -o remount,size=50% /dev/shm; containers: --shm-size=8g or --ipc=host",
     .judge = judge_shm,
     .fix = fix_shm},
    {.id = "disk.space",
     .reference = "H38",
     .area = Area::Userland,
     .fix_class = FixClass::OnRequest,
     .title = "there is enough space for driver files and state",
     .reads = "free space of /var/lib and /run",
     .cause = "Images, logs or old drivers fill the file system: installers and kubelet fail.",
     .remedy = "sudo du -xhd1 /var/lib | sort -h | tail",
     .judge = judge_disk,
     .by_hand = "the owner must decide which files to delete"},
    {.id = "mount.noexec",
     .reference = "H38",
     .area = Area::Userland,
     .fix_class = FixClass::OnRequest,
     .title = "driver files may be executed",
     .reads = "/proc/mounts",
     .cause = "The file system with the driver is mounted noexec (often /run): nvidia-smi says "
              "\"Permission denied\", libraries cannot be mapped.",
     .remedy = "sudo mount -o remount,exec MOUNTPOINT",
     .judge = judge_noexec,
     .fix = fix_noexec},
};

}  // namespace

std::span<const Check> limit_checks() {
  return kLimitsChecks;
}

}  // namespace gantry::doctor
