// SPDX-License-Identifier: Apache-2.0
// Reads the flags of a mount so that a remount can repeat them: in a user namespace a remount may
// not clear any of them.
#pragma once

#include <sys/mount.h>
#include <sys/statvfs.h>

#include <array>
#include <utility>

namespace gantry::sys {

inline unsigned long mount_flags(const struct statvfs& mount) {
  constexpr std::array<std::pair<unsigned long, unsigned long>, 7> kFlagPairs = {
      {{ST_RDONLY, MS_RDONLY},
       {ST_NOSUID, MS_NOSUID},
       {ST_NODEV, MS_NODEV},
       {ST_NOEXEC, MS_NOEXEC},
       {ST_NOATIME, MS_NOATIME},
       {ST_NODIRATIME, MS_NODIRATIME},
       {ST_RELATIME, MS_RELATIME}}};
  unsigned long flags = 0;
  for (const auto& [shown, set] : kFlagPairs) {
    if ((mount.f_flag & shown) != 0) flags |= set;
  }
  return flags;
}

}  // namespace gantry::sys
