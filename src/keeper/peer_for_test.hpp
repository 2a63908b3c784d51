// SPDX-License-Identifier: Apache-2.0
// A process of a share as the fence is one, or as an enemy: what it sends is the test's business.
#pragma once

#include "fence/abi.h"
#include "keeper/pages.hpp"
#include "sys/unique_fd.hpp"

#include <string>

namespace gantry::keeper {

struct Attached {
  FenceWelcome welcome{};
  sys::UniqueFd limits;
  sys::UniqueFd usage;
};

class TestPeer {
 public:
  explicit TestPeer(const std::string& path);  // connects; valid() when that went well

  bool valid() const { return socket_.valid(); }
  int fd() const { return socket_.get(); }
  bool send(const void* bytes, std::size_t size) const;
  bool hello(FenceRole role = FENCE_WORKER) const;
  bool hello_with(int descriptor) const;  // SCM_RIGHTS
  bool report(FenceEvent event, std::uint32_t gpu = 0, std::uint32_t turn = 0,
              std::uint64_t value = 0) const;
  // Waits at most 10 s. False when the keeper has closed the connection.
  bool receive(Attached& attached) const;
  bool is_cut() const;  // the keeper closes it within 10 s

 private:
  sys::UniqueFd socket_;
};

}  // namespace gantry::keeper
