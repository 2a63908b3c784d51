// SPDX-License-Identifier: Apache-2.0
// A peer that behaves like a process with the fence, or like an attacker: the test decides what it
// sends.
#pragma once

#include "base/sys/unique_fd.hpp"
#include "gpu/abi/fence.h"
#include "sharing/daemon/shared_pages.hpp"

#include <optional>
#include <string>

namespace gantry::daemon {

struct AttachReply {
  FenceWelcome welcome{};
  sys::UniqueFd limits;
  sys::UniqueFd usage;
};

class TestPeer {
 public:
  explicit TestPeer(const std::string& path);  // connects; valid() if that succeeded

  bool valid() const { return socket_.valid(); }
  int fd() const { return socket_.get(); }
  bool send(const void* bytes, std::size_t size) const;
  bool hello(FenceRole role = FENCE_WORKER) const;
  bool hello_with(int descriptor) const;  // SCM_RIGHTS
  bool report(FenceEvent event, std::uint32_t gpu = 0, std::uint32_t turn = 0,
              std::uint64_t value = 0) const;
  // Waits at most 10 s. False if the daemon closed the connection.
  bool receive(AttachReply& attached) const;
  bool is_cut() const;  // the daemon closes it within 10 s

 private:
  sys::UniqueFd socket_;
};

// An attached peer with both pages mapped. Asks again, for up to 10 s, while the daemon answers
// "not yet".
class AttachedPeer {
 public:
  explicit AttachedPeer(const std::string& path);

  bool valid() const { return limits_.get() != nullptr && usage_.get() != nullptr; }
  const TestPeer& peer() const { return *peer_; }
  std::uint32_t slot() const { return attached_.welcome.slot; }
  std::size_t usage_size() const { return attached_.welcome.usage_size; }
  const FenceLimits& limits() const { return *static_cast<const FenceLimits*>(limits_.get()); }
  void* usage() const { return usage_.get(); }
  FenceUsageRow& row(std::uint32_t gpu = 0) const;  // its own

 private:
  std::optional<TestPeer> peer_;
  AttachReply attached_;
  Mapping limits_;
  Mapping usage_;
};

}  // namespace gantry::daemon
