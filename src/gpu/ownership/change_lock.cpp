// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/change_lock.hpp"

#include "base/sys/kernel.hpp"
#include "gpu/ownership/ownership_store.hpp"

#include <fcntl.h>

#include <fmt/format.h>

#include <cerrno>

namespace gantry::ownership {
namespace {

std::string lock_path(const sys::Host& host, const model::PciAddress& gpu) {
  return host.outside(fmt::format("{}/{}.lock", kChangeLocks, gpu.sysfs()));
}

struct flock whole_file() {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  return range;
}

Error taken(const sys::Host& host, const model::PciAddress& gpu) {
  const auto state = OwnershipStore::peek(host);
  const auto* intent = state.ok() ? state->intent(gpu) : nullptr;
  return {Errc::Busy,
          intent != nullptr
              ? fmt::format("the owner of {} is being changed: {}", gpu.sysfs(), describe(*intent))
              : fmt::format("another process is about to change the owner of {}; find it with: "
                            "fuser {}",
                            gpu.sysfs(), lock_path(host, gpu))};
}

}  // namespace

// Locks of the open file, not of the process: a test can have both sides in one process, and a
// second descriptor that is closed does not release it.
Result<ChangeLock> ChangeLock::take(const sys::Host& host, const model::PciAddress& gpu) {
  GANTRY_CHECK(sys::real_kernel()->make_directory(host, std::string(kChangeLocks)));
  const auto path = lock_path(host, gpu);
  sys::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return Error::sys(errno, fmt::format("open {}", path));
  auto range = whole_file();
  if (::fcntl(file.get(), F_OFD_SETLK, &range) == 0) return ChangeLock(std::move(file));
  if (errno != EAGAIN && errno != EACCES) return Error::sys(errno, fmt::format("lock {}", path));
  return taken(host, gpu);
}

bool ChangeLock::is_taken(const sys::Host& host, const model::PciAddress& gpu) {
  const sys::UniqueFd file(::open(lock_path(host, gpu).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid()) return false;
  auto range = whole_file();
  return ::fcntl(file.get(), F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

}  // namespace gantry::ownership
