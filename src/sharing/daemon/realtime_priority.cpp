// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/realtime_priority.hpp"

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

RealtimePriority RealtimePriority::take() {
  ::setpriority(PRIO_PROCESS, 0, kNice);
  return RealtimePriority(set_policy(SCHED_RR, 1));
}

void RealtimePriority::start_polling() {
  if (realtime_now_) realtime_now_ = !set_policy(SCHED_OTHER, 0);
}

void RealtimePriority::stop_polling() {
  if (real_time_ && !realtime_now_) realtime_now_ = set_policy(SCHED_RR, 1);
}

}  // namespace gantry::daemon
