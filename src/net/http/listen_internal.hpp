// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"
#include "net/http/address.hpp"

#include <cstdint>

namespace gantry::http {

struct Listener {
  sys::UniqueFd socket;  // does not block
  std::uint16_t port = 0;
};
Result<Listener> listen_at(const Address& address);

}  // namespace gantry::http
