// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/precedence.hpp"

#include <sched.h>
#include <sys/resource.h>

namespace gantry::daemon {
namespace {

constexpr int kNice = -10;

bool set_policy(int policy, int priority) {
  const sched_param first{.sched_priority = priority};
  return ::sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &first) == 0;
}

}  // namespace

Precedence Precedence::take() {
  ::setpriority(PRIO_PROCESS, 0, kNice);
  return Precedence(set_policy(SCHED_RR, 1));
}

void Precedence::look_on() {
  if (before_others_) before_others_ = !set_policy(SCHED_OTHER, 0);
}

void Precedence::sleep_between() {
  if (real_time_ && !before_others_) before_others_ = set_policy(SCHED_RR, 1);
}

}  // namespace gantry::daemon
