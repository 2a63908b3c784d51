// SPDX-License-Identifier: Apache-2.0
// The driver's libraries: installed, found by the loader, all of one version.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/tally.hpp"
#include "gpu/loader/ld_cache.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace gantry::doctor {
namespace {

constexpr std::array kDefaultDirectories{"/lib/x86_64-linux-gnu",
                                         "/usr/lib/x86_64-linux-gnu",
                                         "/lib/aarch64-linux-gnu",
                                         "/usr/lib/aarch64-linux-gnu",
                                         "/lib64",
                                         "/usr/lib64",
                                         "/lib",
                                         "/usr/lib"};

const model::DriverFile* library(const Facts& f, std::string_view prefix) {
  for (const auto& file : f.inventory().files) {
    if (file.kind == model::DriverFileKind::Library && !file.is_32bit &&
        base_name(file.path).starts_with(prefix)) {
      return &file;
    }
  }
  return nullptr;
}

Finding judge_libraries_present(const Facts& f) {
  if (f.guest().wsl) return skip("WSL has its libraries in /usr/lib/wsl: see guest.wsl");
  if (f.gpu_functions().empty()) return skip("no GPU on the bus");
  Tally tally;
  const bool no_cuda = is_vgpu_host(f);
  for (std::string_view name : {"libcuda.so", "libnvidia-ml.so"}) {
    if (no_cuda && name == "libcuda.so") continue;
    const auto* file = library(f, name);
    if (file == nullptr) {
      tally.found(fmt::format("{}.1", name), {std::string(name), "(not found)"});
    } else {
      tally.good({std::string(name), file->path});
    }
  }
  if (!tally.any_bad() && no_cuda)
    return ok("libnvidia-ml is installed; a vGPU host has no libcuda", tally.well);
  if (!tally.any_bad()) return ok("libcuda and libnvidia-ml are installed", tally.well);
  // Without a module for any kernel, the driver is not installed at all.
  return fail(fmt::format("not found: {}", tally.who()), tally.bad)
      .unless_explained_by("module.kernel");
}

bool in_cache(const Facts& f, const std::string& real) {
  const auto bytes = f.host().read("/etc/ld.so.cache", std::size_t{64} << 20);
  if (!bytes.ok()) return false;
  const auto cache = loader::parse_ld_cache(*bytes);
  if (!cache.ok()) return false;
  return std::any_of(cache->entries.begin(), cache->entries.end(), [&](const auto& entry) {
    if (entry.name != "libcuda.so.1") return false;
    const auto target = f.host().resolve(entry.path);
    return target.ok() && *target == real;
  });
}

Finding judge_loader(const Facts& f) {
  const auto* file = library(f, "libcuda.so");
  if (file == nullptr) return skip("libcuda was not found: see lib.present");
  const auto directory = parent_directory(file->path);
  if (in_cache(f, file->path))
    return ok("the loader finds libcuda", {{"/etc/ld.so.cache", file->path}});
  for (std::string_view known : kDefaultDirectories) {
    const auto target = f.host().resolve(fmt::format("{}/libcuda.so.1", known));
    if (target.ok() && *target == file->path) {
      return ok("libcuda is in a directory of the loader", {{std::string(known), file->path}});
    }
  }
  const std::vector<Evidence> read{{"libcuda", file->path},
                                   {"/etc/ld.so.cache", "no libcuda.so.1 there"},
                                   {"LD_LIBRARY_PATH", f.caller().library_path}};
  const auto remedy =
      fmt::format("echo {} | sudo tee /etc/ld.so.conf.d/nvidia.conf && sudo ldconfig", directory);
  const auto paths = split(f.caller().library_path, ':');
  if (std::find(paths.begin(), paths.end(), directory) != paths.end()) {
    return info("libcuda is found only through LD_LIBRARY_PATH", read).advise(remedy);
  }
  return warn(fmt::format("the loader does not search {}", directory), read).advise(remedy);
}

// Finds dangling links and empty files in the directories of the loader.
Tally broken_libraries(const Facts& f) {
  Tally tally;
  for (std::string_view directory : kDefaultDirectories) {
    for (std::string_view name : {"libcuda.so.1", "libnvidia-ml.so.1"}) {
      const auto path = fmt::format("{}/{}", directory, name);
      if (!f.host().link_info(path).ok()) continue;
      const auto real = f.host().info(path);
      if (!real.ok()) {
        tally.found(path + " is a dangling link", {path, f.host().link(path).value_or("?")}, path);
      } else if (real->size == 0) {
        tally.found(path + " is an empty file", {path, "0 bytes"}, path);
      } else {
        tally.good({path, fmt::format("{} bytes", real->size)});
      }
    }
  }
  return tally;
}

Finding judge_stub(const Facts& f) {
  for (auto path : split(f.caller().library_path, ':')) {
    if (!path.ends_with("/stubs") && !path.ends_with("/stubs/")) continue;
    return fail(fmt::format("LD_LIBRARY_PATH contains CUDA's stub libraries: {}", path),
                {{"LD_LIBRARY_PATH", f.caller().library_path}})
        .advise("unset LD_LIBRARY_PATH  # or remove the stubs directory from it");
  }
  for (const auto& note : f.inventory().notes) {
    if (!contains(note, " is damaged: ")) continue;
    return fail(note.substr(0, note.find(':')), {{"driver files", note}})
        .advise("reinstall the driver's user space: its package, or its .run file");
  }
  const auto tally = broken_libraries(f);
  if (tally.any_bad()) {
    return fail(tally.who(), tally.bad).advise(tally.command("sudo rm @") + " && sudo ldconfig");
  }
  return ok("no stub, empty, damaged or dangling driver library", tally.well);
}

Finding judge_versions(const Facts& f) {
  if (library(f, "libcuda.so") == nullptr) return skip("libcuda was not found: see lib.present");
  std::set<std::string> versions;
  std::vector<Evidence> read;
  std::set<std::string> directories(kDefaultDirectories.begin(), kDefaultDirectories.end());
  directories.insert(f.inventory().driver.library_directory);
  for (const auto& directory : directories) {
    const auto names = f.host().list(directory);
    if (!names.ok()) continue;
    for (const auto& name : *names) {
      const std::string prefix = "libcuda.so.";
      if (!name.starts_with(prefix) || !contains(name.substr(prefix.size()), ".")) continue;
      if (versions.insert(name.substr(prefix.size())).second) {
        read.push_back({directory, name});
      }
    }
  }
  if (versions.size() < 2) return ok("one version of libcuda is installed", read);
  return warn(fmt::format("{} versions of libcuda are installed: {}", versions.size(),
                          fmt::join(versions, ", ")),
              read);
}

Finding judge_compat(const Facts& f) {
  for (auto path : split(f.caller().library_path, ':')) {
    if (!contains(path, "/compat")) continue;
    const auto names = f.host().list(path);
    if (!names.ok()) continue;
    for (const auto& name : *names) {
      const std::string prefix = "libcuda.so.";
      const auto version = name.substr(std::min(name.size(), prefix.size()));
      if (!name.starts_with(prefix) || !contains(version, ".")) continue;
      const auto major = parse_u64(version.substr(0, version.find('.')));
      const auto& running = f.inventory().driver.version;
      const auto driver = parse_u64(running.substr(0, running.find('.')));
      if (!major || !driver || *major >= *driver) continue;
      return warn(fmt::format("LD_LIBRARY_PATH puts libcuda {} before the driver's {}", version,
                              running),
                  {{std::string(path), name}})
          .advise(fmt::format("export LD_LIBRARY_PATH=  # without {}", path));
    }
  }
  return ok("no older compatibility library comes first",
            {{"LD_LIBRARY_PATH", f.caller().library_path}});
}

constexpr Check kLibrariesChecks[] = {
    {.id = "lib.present",
     .reference = "C3",
     .area = Area::Userland,
     .title = "libcuda and libnvidia-ml are installed",
     .reads = "ld.so.cache, standard directories, known driver roots",
     .cause = "Only the kernel module is installed, or the libraries are in an unusual directory. "
              "Programs say \"libcuda.so.1: cannot open shared object file\".",
     .remedy = "install the driver's compute package (libcuda1, nvidia-utils, nvidia-compute-G06)",
     .judge = judge_libraries_present},
    {.id = "lib.loader",
     .reference = "C3",
     .area = Area::Userland,
     .title = "the loader finds libcuda",
     .reads = "/etc/ld.so.cache, default directories, LD_LIBRARY_PATH",
     .cause = "The driver is in its own directory (/usr/lib/nvidia-384, /usr/local/nvidia), which "
              "ldconfig does not know.",
     .remedy = "echo DIRECTORY | sudo tee /etc/ld.so.conf.d/nvidia.conf && sudo ldconfig",
     .judge = judge_loader},
    {.id = "lib.stub",
     .reference = "C3",
     .area = Area::Userland,
     .title = "no stub, empty or dangling driver library",
     .reads = "libcuda.so.1 and libnvidia-ml.so.1 in default directories, LD_LIBRARY_PATH",
     .cause = "Stubs of the CUDA toolkit, remains of a container image, or links to a removed "
              "version hide the real library.",
     .remedy = "sudo rm PATH && sudo ldconfig",
     .judge = judge_stub},
    {.id = "lib.versions",
     .reference = "H11",
     .area = Area::Userland,
     .fix_class = FixClass::OnRequest,
     .title = "one version of libcuda is installed",
     .reads = "libcuda.so.* in default directories and next to the driver",
     .cause = "An older installation (a .run file, another package) was not removed; a program may "
              "load either version.",
     .remedy = "sudo nvidia-uninstall  # removes a .run installation; then sudo ldconfig",
     .judge = judge_versions,
     .by_hand = "the owner must decide which of the installations to remove"},
    {.id = "lib.compat",
     .reference = "C6",
     .area = Area::Userland,
     .title = "no older compatibility library comes first",
     .reads = "LD_LIBRARY_PATH, */compat/libcuda.so.*",
     .cause =
         "A CUDA compatibility package older than the driver comes first: error 803 \"system has "
         "unsupported display driver / cuda driver combination\".",
     .remedy = "remove the compat directory from LD_LIBRARY_PATH",
     .judge = judge_compat},
};

}  // namespace

std::span<const Check> library_checks() {
  return kLibrariesChecks;
}

}  // namespace gantry::doctor
