// SPDX-License-Identifier: Apache-2.0
#include "sys/kernel.hpp"

#include "base/text.hpp"
#include "sys/child.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdio>

namespace gantry::sys {
namespace {

constexpr std::chrono::seconds kCommandDeadline{60};

Status finished(const std::vector<std::string>& argv) {
  GANTRY_TRY(const CommandResult result, run_command(argv, kCommandDeadline));
  if (result.status == 0) return {};
  return Error(Errc::Internal, fmt::format("{} ended with status {}: {}", argv[0], result.status,
                                           trim(result.output)));
}

class RealKernel final : public Kernel {
 public:
  Status make_char_device(const Host& host, const std::string& path,
                          const FileInfo& node) override {
    const auto slash = path.rfind('/');
    GANTRY_TRY(const UniqueFd dir, host.open(path.substr(0, slash), O_PATH | O_DIRECTORY));
    const auto name = path.substr(slash + 1);
    const auto temporary = fmt::format(".{}.gantry", name);
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

  Status load_module(const Host& host, const std::string& name) override {
    if (host.is_live()) return finished({"modprobe", name});
    return finished({"chroot", host.root(), "modprobe", name});
  }

  Status write_value(const Host& host, const std::string& path, const std::string& value) override {
    GANTRY_TRY(const UniqueFd fd, host.open(path, O_WRONLY));
    if (::write(fd.get(), value.data(), value.size()) < 0) {
      return Error::sys(errno, fmt::format("write {}", host.outside(path)));
    }
    return {};
  }

  Status run(const std::vector<std::string>& argv) override { return finished(argv); }
};

}  // namespace

std::unique_ptr<Kernel> real_kernel() {
  return std::make_unique<RealKernel>();
}

}  // namespace gantry::sys
