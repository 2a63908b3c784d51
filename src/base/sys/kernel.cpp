// SPDX-License-Identifier: Apache-2.0
#include "base/sys/kernel.hpp"

#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "base/sys/machine_entry.hpp"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

namespace gantry::sys {
namespace {

constexpr std::chrono::seconds kModprobeDeadline{60};

// The boot id of the running kernel. A copied tree cannot have it.
std::optional<std::string> boot_id(const Host& host) {
  constexpr std::string_view kPath = "/proc/sys/kernel/random/boot_id";
  const auto fd = host.open(kPath, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct statfs where {};
  if (!fd.ok() || ::fstatfs(fd->get(), &where) != 0 || where.f_type != PROC_SUPER_MAGIC) {
    return std::nullopt;
  }
  return host.read_value(kPath);
}

Status run_to_success(const std::vector<std::string>& argv, const CommandOptions& options) {
  GANTRY_TRY(const CommandResult result, run_command(argv, options));
  if (result.status == 0) return {};
  return Error(Errc::Internal, fmt::format("{} ended with status {}: {}", argv[0], result.status,
                                           trim(result.output)));
}

std::pair<std::string, std::string> split_path(std::string_view path) {
  return {std::string(parent_directory(path)), std::string(base_name(path))};
}

// Written under a temporary name in the directory, then renamed.
Status write_new_file(int dir, const std::string& temporary, const std::string& name,
                      std::string_view content, const FileInfo& like) {
  ::unlinkat(dir, temporary.c_str(), 0);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const UniqueFd fd(::openat(dir, temporary.c_str(), kFlags, 0600));
  if (!fd.valid()) return Error::sys(errno, "open");
  while (!content.empty()) {
    const auto wrote = ::write(fd.get(), content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Error::sys(errno, "write");
    content.remove_prefix(static_cast<std::size_t>(wrote));
  }
  // An ordinary user's own tree: the file is theirs already.
  if (::geteuid() == 0 && ::fchown(fd.get(), like.uid, like.gid) != 0) {
    return Error::sys(errno, "chown");
  }
  if (::fchmod(fd.get(), like.mode) != 0) return Error::sys(errno, "chmod");
  if (::fsync(fd.get()) != 0) return Error::sys(errno, "fsync");
  if (::renameat(dir, temporary.c_str(), dir, name.c_str()) != 0) {
    return Error::sys(errno, "rename");
  }
  return {};
}

class RealKernel final : public Kernel {
 public:
  bool is_this_machine(const Host& host) override {
    if (host.is_live()) return true;
    if (host.exists("/.gantry-sim")) return false;
    const auto theirs = boot_id(host);
    const auto here = Host::at("/");
    return theirs && here.ok() && theirs == boot_id(*here);
  }

  Status make_char_device(const Host& host, const std::string& path,
                          const FileInfo& node) override {
    const auto [parent, name] = split_path(path);
    GANTRY_TRY(const UniqueFd dir, host.open(parent, O_PATH | O_DIRECTORY));
    const auto temporary = temporary_of(name);
    ::unlinkat(dir.get(), temporary.c_str(), 0);
    auto fail = [&](const char* call) {
      const int err = errno;
      ::unlinkat(dir.get(), temporary.c_str(), 0);
      return Error::sys(err, fmt::format("{} {}", call, host.outside(path)));
    };
    if (::mknodat(dir.get(), temporary.c_str(), S_IFCHR | 0600, makedev(node.major, node.minor)) !=
        0) {
      return fail("mknod");
    }
    if (::fchownat(dir.get(), temporary.c_str(), node.uid, node.gid, AT_SYMLINK_NOFOLLOW) != 0) {
      return fail("chown");
    }
    if (::fchmodat(dir.get(), temporary.c_str(), node.mode, 0) != 0) return fail("chmod");
    if (::renameat(dir.get(), temporary.c_str(), dir.get(), name.c_str()) != 0)
      return fail("rename");
    return {};
  }

  Status set_mode(const Host& host, const std::string& path, unsigned mode) override {
    GANTRY_TRY(const UniqueFd fd, host.open(path, O_PATH));
    const auto self = fmt::format("/proc/self/fd/{}", fd.get());
    if (::chmod(self.c_str(), mode) != 0) {
      return Error::sys(errno, fmt::format("chmod {}", host.outside(path)));
    }
    return {};
  }

  Status make_directory(const Host& host, const std::string& path) override {
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
      const auto part = path.substr(0, end);
      if (!host.exists(part)) {
        const auto [dir, name] = split_path(part);
        GANTRY_TRY(const UniqueFd fd, host.open(dir, O_PATH | O_DIRECTORY));
        if (::mkdirat(fd.get(), name.c_str(), 0755) != 0 && errno != EEXIST) {
          return Error::sys(errno, fmt::format("mkdir {}", host.outside(part)));
        }
      }
      if (end == std::string::npos) return {};
    }
  }

  Status make_symlink(const Host& host, const std::string& path,
                      const std::string& target) override {
    const auto [parent, name] = split_path(path);
    GANTRY_TRY(const UniqueFd dir, host.open(parent, O_PATH | O_DIRECTORY));
    const auto temporary = temporary_of(name);
    ::unlinkat(dir.get(), temporary.c_str(), 0);
    if (::symlinkat(target.c_str(), dir.get(), temporary.c_str()) != 0) {
      return Error::sys(errno, fmt::format("symlink {}", host.outside(path)));
    }
    if (::renameat(dir.get(), temporary.c_str(), dir.get(), name.c_str()) != 0) {
      const int err = errno;
      ::unlinkat(dir.get(), temporary.c_str(), 0);
      return Error::sys(err, fmt::format("rename {}", host.outside(path)));
    }
    return {};
  }

  Status load_module(const Host& host, const std::string& name) override {
    return run(host, {"modprobe", name}, kModprobeDeadline);
  }

  Status write_value(const Host& host, const std::string& path, const std::string& value) override {
    // O_TRUNC: for regular files in a simulated tree. O_NONBLOCK: a FIFO in it must not make us
    // wait for a reader.
    constexpr int kFlags = O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY;
    GANTRY_TRY(const UniqueFd fd, host.open(path, kFlags));
    struct stat st {};
    if (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) {
      return Error(Errc::Invalid, fmt::format("{} is not a regular file", host.outside(path)));
    }
    const auto wrote = ::write(fd.get(), value.data(), value.size());
    if (wrote < 0) return Error::sys(errno, fmt::format("write {}", host.outside(path)));
    if (static_cast<std::size_t>(wrote) != value.size()) {
      return Error(Errc::Internal, fmt::format("write {}: the kernel accepted only {} of {} bytes",
                                               host.outside(path), wrote, value.size()));
    }
    return {};
  }

  Status write_file(const Host& host, const std::string& path,
                    const std::string& content) override {
    const auto real = host.resolve(path).value_or(path);
    const auto [parent, name] = split_path(real);
    GANTRY_CHECK(make_directory(host, parent));
    GANTRY_TRY(const UniqueFd dir, host.open(parent, O_PATH | O_DIRECTORY));
    FileInfo like{.mode = 0644};
    if (const auto old = host.info(real); old.ok()) {
      if (old->kind != FileKind::Regular) {
        return Error(Errc::Invalid, fmt::format("{} is not a regular file", host.outside(real)));
      }
      like = *old;
    }
    const auto temporary = temporary_of(name);
    auto status = write_new_file(dir.get(), temporary, name, content, like);
    if (status.ok()) return status;
    ::unlinkat(dir.get(), temporary.c_str(), 0);
    return Error(status.error().code(),
                 fmt::format("{}: {}", host.outside(real), status.error().text()));
  }

  Status remove_file(const Host& host, const std::string& path) override {
    const auto [parent, name] = split_path(path);
    GANTRY_TRY(const UniqueFd dir, host.open(parent, O_PATH | O_DIRECTORY));
    if (::unlinkat(dir.get(), name.c_str(), 0) != 0) {
      return Error::sys(errno, fmt::format("unlink {}", host.outside(path)));
    }
    return {};
  }

  Status run(const Host& host, const std::vector<std::string>& argv,
             std::chrono::seconds deadline) override {
    if (host.is_live()) return run_to_success(argv, {.deadline = deadline});
    if (!is_this_machine(host)) {
      return Error(Errc::Denied, fmt::format("{} is not the running machine, so {} is not run",
                                             host.root(), argv.front()));
    }
    const auto entry = MachineEntry::of(host);
    CommandOptions options{.deadline = deadline};
    options.before = [&] { return entry.enter(); };
    for (char** variable = environ; *variable != nullptr; ++variable)
      options.environment.emplace_back(*variable);
    options.environment.emplace_back(MachineEntry::kIgnoreChroot);
    return run_to_success(argv, options);
  }
};

}  // namespace

std::unique_ptr<Kernel> real_kernel() {
  return std::make_unique<RealKernel>();
}

std::string temporary_of(std::string_view path) {
  const auto name = base_name(path);
  return fmt::format("{}.{}.gantry", path.substr(0, path.size() - name.size()), name);
}

}  // namespace gantry::sys
