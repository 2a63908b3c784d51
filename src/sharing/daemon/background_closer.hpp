// SPDX-License-Identifier: Apache-2.0
// Closes connections to untrusted peers in another thread. An unread message may hold descriptors
// (SCM_RIGHTS), and closing the last reference to one may block: a TCP socket with SO_LINGER blocks
// for as long as its sender likes. The daemon's own thread must not wait for that, because it
// changes the gates.
#pragma once

#include "base/sys/unique_fd.hpp"

#include <memory>

namespace gantry::daemon {

class BackgroundCloser {
 public:
  BackgroundCloser();
  ~BackgroundCloser();  // does not wait for the thread
  BackgroundCloser(const BackgroundCloser&) = delete;
  BackgroundCloser& operator=(const BackgroundCloser&) = delete;

  void close(sys::UniqueFd fd);
  std::size_t open() const;  // handed over but not yet closed

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gantry::daemon
