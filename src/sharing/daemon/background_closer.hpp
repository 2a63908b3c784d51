// SPDX-License-Identifier: Apache-2.0
// Closes connections to strangers. A message that nobody has read may hold descriptors
// (SCM_RIGHTS), and whoever drops the last of them waits for what is behind it: a TCP socket with
// SO_LINGER stays as long as its sender likes. So another thread closes them, and the keeper's
// gates go on.
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
  std::size_t open() const;  // handed over and not closed yet

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gantry::daemon
