// SPDX-License-Identifier: Apache-2.0
#include "base/sys/kernel.hpp"
#include "container/driver_dir/directory_lock_internal.hpp"
#include "container/plan/driver_paths.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <fmt/format.h>

#include <cerrno>
#include <thread>

namespace gantry::driver_dir {
namespace {

constexpr std::chrono::milliseconds kLockPollInterval{10};

}  // namespace

Result<DirectoryLock> DirectoryLock::take(const sys::Host& host,
                                          std::chrono::milliseconds deadline) {
  GANTRY_CHECK(sys::real_kernel()
                   ->make_directory(host, std::string(plan::kDriverDirectories))
                   .in("preparing the driver's files"));
  GANTRY_TRY(auto directory, host.open(plan::kDriverDirectories, O_RDONLY | O_DIRECTORY)
                                 .in("preparing the driver's files"));
  sys::UniqueFd lock(::openat(directory.get(), ".lock",
                              O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!lock.valid()) {
    return Error::sys(errno, fmt::format("open {}/.lock", host.outside(plan::kDriverDirectories)));
  }
  const auto until = std::chrono::steady_clock::now() + deadline;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return Error::sys(errno, "flock .lock");
    if (std::chrono::steady_clock::now() >= until) {
      return Error(Errc::Busy,
                   fmt::format("another process prepares the driver's files in {} and did not "
                               "finish within {} ms; to find it: fuser {}/.lock",
                               host.outside(plan::kDriverDirectories), deadline.count(),
                               host.outside(plan::kDriverDirectories)));
    }
    std::this_thread::sleep_for(kLockPollInterval);
  }
  return DirectoryLock(std::move(directory), std::move(lock));
}

}  // namespace gantry::driver_dir
