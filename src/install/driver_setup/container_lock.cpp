// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/container_lock.hpp"

#include "base/core/text.hpp"
#include "base/sys/kernel.hpp"
#include "install/preflight/container_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>

namespace gantry::driver_setup {
namespace {

using preflight::kContainerLock;

constexpr int kTries = 8;

Error is_held(const sys::Host& host) {
  const auto holder = preflight::container_lock_holder(host);
  return Error(Errc::Busy,
               fmt::format("NVIDIA's driver container is at work: {} holds {}",
                           holder ? describe(*holder) : "a process", host.outside(kContainerLock)))
      .advise(preflight::kEndDriverContainer);
}

// For people and for NVIDIA's tools, which find the process by it.
void write_process(int file) {
  const auto pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file, 0) == 0) static_cast<void>(::pwrite(file, pid.data(), pid.size(), 0));
}

Result<sys::UniqueFd> open_directory(const sys::Host& host) {
  const std::string directory(parent_directory(kContainerLock));
  GANTRY_CHECK(sys::real_kernel()->make_directory(host, directory));
  return host.open(directory, O_RDONLY | O_DIRECTORY);
}

}  // namespace

Result<std::unique_ptr<ContainerLock>> ContainerLock::take(const sys::Host& host) {
  const std::string name(base_name(kContainerLock));
  for (int tries = 0; tries < kTries; ++tries) {
    GANTRY_TRY(const auto directory,
               open_directory(host).in("taking the lock of driver containers"));
    sys::UniqueFd file(::openat(directory.get(), name.c_str(),
                                O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644));
    if (!file.valid())
      return Error::sys(errno, fmt::format("open {}", host.outside(kContainerLock)));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return is_held(host);
      return Error::sys(errno, fmt::format("flock {}", host.outside(kContainerLock)));
    }
    // A process that had it removed its file at the end: only the file with the name counts.
    const auto named = host.open(kContainerLock, O_PATH | O_NOFOLLOW);
    if (!named.ok() || !sys::same_file(named->get(), file.get())) continue;
    write_process(file.get());
    return std::unique_ptr<ContainerLock>(new ContainerLock(host, std::move(file)));
  }
  return is_held(host);
}

ContainerLock::~ContainerLock() {
  const std::string path(kContainerLock);
  const auto directory = host_.open(parent_directory(path), O_RDONLY | O_DIRECTORY);
  if (directory.ok()) ::unlinkat(directory->get(), std::string(base_name(path)).c_str(), 0);
  const auto above = host_.open("/run", O_RDONLY | O_DIRECTORY);
  if (above.ok()) ::unlinkat(above->get(), "nvidia", AT_REMOVEDIR);  // if nothing else is there
}

}  // namespace gantry::driver_setup
