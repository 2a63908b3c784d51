// SPDX-License-Identifier: Apache-2.0
#include "base/sys/network_namespace.hpp"

#include <sched.h>

#include <cerrno>
#include <thread>

namespace gantry::sys {

Status in_network_namespace(int name_space, const std::function<void()>& work) {
  Status entered;
  std::thread([&] {
    if (::setns(name_space, CLONE_NEWNET) != 0) {
      entered = Error::sys(errno, "setns");
      return;
    }
    work();
  }).join();
  return entered;
}

}  // namespace gantry::sys
