// SPDX-License-Identifier: Apache-2.0
#include "base/sys/machine_entry.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gantry::sys {
namespace {

// A tree below our own root may be a part of the machine only: its first process has another root.
bool is_root_of_first_process(const Host& host) {
  struct stat root {};
  struct stat first {};
  return ::stat(host.root().c_str(), &root) == 0 &&
         ::stat(host.outside("/proc/1/root").c_str(), &first) == 0 && root.st_dev == first.st_dev &&
         root.st_ino == first.st_ino;
}

}  // namespace

MachineEntry MachineEntry::of(const Host& host) {
  MachineEntry entry;
  entry.root_ = host.root();
  // The links of /proc lead to where no path does, so they are opened by the kernel alone.
  if (is_root_of_first_process(host))
    entry.mounts_ = UniqueFd(::open(host.outside("/proc/1/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
  return entry;
}

bool MachineEntry::enter() const {
  if (mounts_.valid() && ::setns(mounts_.get(), CLONE_NEWNS) == 0) return true;
  return ::chroot(root_.c_str()) == 0 && ::chdir("/") == 0;
}

}  // namespace gantry::sys
