// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/start_lock.hpp"

#include "base/sys/kernel.hpp"
#include "gpu/ownership/ownership_store.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <fmt/format.h>

#include <cerrno>

namespace gantry::ownership {
namespace {

Result<sys::UniqueFd> lock(const std::string& path, int kind) {
  sys::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return Error::sys(errno, fmt::format("open {}", path));
  int result = 0;
  do {
    result = ::flock(file.get(), kind);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return file;
  if (errno != EWOULDBLOCK) return Error::sys(errno, fmt::format("flock {}", path));
  return Error(Errc::Busy, "an agent starts, and no change begins before it has taken over")
      .advise(fmt::format("repeat the command in a few seconds; `fuser {}` finds the agent", path));
}

std::string start_lock_path(std::string_view ledger) {
  return fmt::format("{}.start", ledger);
}

}  // namespace

Result<StartLock> StartLock::take(const sys::Host& host) {
  const auto directory = kOwnershipPath.substr(0, kOwnershipPath.rfind('/'));
  GANTRY_CHECK(sys::real_kernel()->make_directory(host, std::string(directory)));
  GANTRY_TRY(auto file, lock(start_lock_path(host.outside(kOwnershipPath)), LOCK_SH));
  return StartLock(std::move(file));
}

Result<BeginLock> BeginLock::take(const std::string& ledger) {
  GANTRY_TRY(auto file, lock(start_lock_path(ledger), LOCK_EX | LOCK_NB));
  return BeginLock(std::move(file));
}

}  // namespace gantry::ownership
