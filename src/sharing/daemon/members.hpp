// SPDX-License-Identifier: Apache-2.0
// The processes of a share that use CUDA: each has a slot of the pages from its first hello until
// the kernel says that it has ended. Sockets come and go in between.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "sharing/daemon/identity.hpp"
#include "sharing/daemon/pages.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace gantry::daemon {

struct Member {
  pid_t pid = 0;
  std::uint32_t slot = 0;
  std::uint32_t inner_pid = 0;
  std::uint32_t connections = 0;
  std::uint64_t unconnected_ns = 0;  // since when it has none
  sys::UniqueFd pidfd;
  sys::Loop::Watch death;
};

class Members {
 public:
  using OnChange = std::function<void(const Member&)>;
  struct Callbacks {
    OnChange joined;
    OnChange left;  // its rows are still there
  };
  // `loop` and `pages` outlive it.
  Members(sys::Loop& loop, Pages& pages, Callbacks callbacks);
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  // The slot of this process: the one it has, or a new one. Busy when all are taken.
  Result<std::uint32_t> join(Identity identity);

  // Its sockets. One that has none, and no memory on a GPU, has become another program by exec.
  void connected(std::uint32_t slot);
  void disconnected(pid_t pid, std::uint32_t slot);

  const std::map<std::uint32_t, std::unique_ptr<Member>>& by_slot() const { return by_slot_; }
  const Member* of_pid(pid_t pid) const;

 private:
  void leave(std::uint32_t slot);
  std::optional<std::uint32_t> free_slot() const;

  sys::Loop& loop_;
  Pages& pages_;
  Callbacks callbacks_;
  std::map<std::uint32_t, std::unique_ptr<Member>> by_slot_;
  std::map<pid_t, std::uint32_t> slots_;
};

}  // namespace gantry::daemon
