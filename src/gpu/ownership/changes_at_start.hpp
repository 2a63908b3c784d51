// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"

#include <functional>
#include <string>

namespace gantry::ownership {

// For a program that keeps GPUs open: while a living process changes the owner of a GPU, a program
// that starts must not open it. Later changes ask the program that runs to let go of the GPU.
class ChangesAtStart {
 public:
  // `ended` is called once, from the loop, when none of the changes is under way any more; never if
  // there is none now.
  ChangesAtStart(sys::Loop& loop, const sys::Host& host, std::function<void()> ended);
  ChangesAtStart(const ChangesAtStart&) = delete;
  ChangesAtStart& operator=(const ChangesAtStart&) = delete;

  // The first change, as a sentence; "" if the GPUs may be opened.
  const std::string& why() const { return why_; }

 private:
  void look();

  const sys::Host& host_;
  std::function<void()> ended_;
  std::string why_;
  sys::Loop::Timer timer_;
};

}  // namespace gantry::ownership
