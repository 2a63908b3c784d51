// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/nvml_program.hpp"

#include "base/sys/descriptor.hpp"
#include "base/sys/trusted.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>

namespace gantry::probe {
namespace {

constexpr const char* kSelf = "/proc/self/exe";
#if defined(__aarch64__)
constexpr const char* kGlibcLoader = "/lib/ld-linux-aarch64.so.1";
#else
constexpr const char* kGlibcLoader = "/lib64/ld-linux-x86-64.so.2";
#endif

// GPUs are still found: snapshot() reads /proc and /sys in any case.
Error not_queried(Errc code, std::string_view why) {
  return {code, fmt::format("NVML was not queried, and only /proc and /sys were read: {}", why)};
}

// The owner of the running program can replace it, so the other program may be theirs, too.
Result<std::uint32_t> owner_of_this_program() {
  struct stat self {};
  if (::stat(kSelf, &self) != 0) return Error::sys(errno, fmt::format("stat {}", kSelf));
  return self.st_uid;
}

Status check_owner(int fd, std::uint32_t owner, const std::string& path) {
  GANTRY_TRY(const auto found, sys::file_info(fd, path));
  return sys::check_trusted(found.uid, found.mode, owner, path);
}

// In a directory that only trusted users can change, the name and its file are theirs, whatever
// happens to the directories above it meanwhile.
Result<sys::UniqueFd> open_checked(const std::string& path) {
  GANTRY_TRY(const auto owner, owner_of_this_program());
  const auto slash = path.rfind('/');
  const auto directory = path.substr(0, slash);
  const sys::UniqueFd above(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!above.valid()) return Error::sys(errno, fmt::format("open {}", directory));
  GANTRY_CHECK(check_owner(above.get(), owner, directory));
  sys::UniqueFd file(
      ::openat(above.get(), path.c_str() + slash + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid()) return Error::sys(errno, fmt::format("open {}", path));
  GANTRY_CHECK(check_owner(file.get(), owner, path));
  return file;
}

}  // namespace

std::vector<std::string> nvml_arguments(const sys::Host& host, const std::string& ld_cache,
                                        std::string fourth, const driver::DriverLocation& driver) {
  std::vector<std::string> arguments{host.root(), ld_cache, std::move(fourth), driver.root};
  arguments.insert(arguments.end(), driver.libraries.begin(), driver.libraries.end());
  return arguments;
}

Result<NvmlProgram> find_nvml_program(const std::string& directory) {
  const auto place = (std::filesystem::path(directory) / kNvmlProgram).lexically_normal();
  std::error_code failed;
  auto path = std::filesystem::canonical(place, failed).string();
  if (failed) {
    return not_queried(Errc::NotFound, fmt::format("{}: {}; reinstall Gantry for what only NVML "
                                                   "knows",
                                                   place.string(), failed.message()));
  }
  if (!path.ends_with(fmt::format("/{}", kNvmlProgram))) {
    return not_queried(Errc::Denied, fmt::format("{} is a link to another program, {}; reinstall "
                                                 "Gantry",
                                                 place.string(), path));
  }
  auto file = open_checked(path);
  if (!file.ok()) return not_queried(file.error().code(), file.error().text());
  return NvmlProgram{.path = std::move(path), .file = *std::move(file)};
}

Result<NvmlCommand> nvml_command(std::string_view command) {
  std::error_code failed;
  const auto self = std::filesystem::read_symlink(kSelf, failed);
  if (failed) return not_queried(Errc::NotFound, fmt::format("{}: {}", kSelf, failed.message()));
  GANTRY_TRY(auto found, find_nvml_program(self.parent_path() / "../lib/gantry"));
  return NvmlCommand{
      .argv = {std::move(found.path), std::string(command), std::string(kNvmlProtocol)},
      .program = std::move(found.file)};
}

Error nvml_not_started(const Error& cause, const std::string& path) {
  // The kernel says the same if the program or its loader does not exist.
  if (cause.sys_errno() == ENOENT && ::access(kGlibcLoader, F_OK) != 0) {
    return not_queried(Errc::Unsupported,
                       fmt::format("{} needs glibc, as NVIDIA's libraries do, and this system "
                                   "has no {}",
                                   path, kGlibcLoader));
  }
  return not_queried(cause.code(), cause.text());
}

}  // namespace gantry::probe
