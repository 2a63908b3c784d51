// SPDX-License-Identifier: Apache-2.0
// Keeps the MPS daemons that the offer needs, in a thread of its own: starting one takes seconds. A
// resource is offered once its daemon answers, and withdrawn while it does not.
#pragma once

#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "node/agent/log.hpp"
#include "node/resources/resources.hpp"
#include "sharing/mps/control_daemon.hpp"
#include "sharing/mps/daemon_plan.hpp"

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gantry::agent {

class MpsSupervisor {
 public:
  // `on_change`, in the loop: something became ready, or is no longer.
  MpsSupervisor(sys::Loop& loop, const sys::Host& host, Log log, std::function<void()> on_change);
  ~MpsSupervisor();  // daemons go on: their clients do, and the next agent finds them
  MpsSupervisor(const MpsSupervisor&) = delete;
  MpsSupervisor& operator=(const MpsSupervisor&) = delete;

  // The daemons from now on; those that are not among them are ended.
  void want(std::vector<mps::DaemonPlan> plans, const std::string& mps_root);

  const std::vector<mps::DaemonPlan>& plans() const { return desired_.plans; }  // those wanted now
  bool all_ready() const { return all_ready(states_); }
  // Takes out of `offer` what has no daemon yet, with the reason as a note.
  void withdraw_unready(resources::Offer& offer) const;

 private:
  struct State {  // of a daemon; "": it answers
    std::string why = "its MPS daemon is being started";
  };
  struct DesiredDaemons {
    std::vector<mps::DaemonPlan> plans;
    std::string root;
    bool operator==(const DesiredDaemons&) const = default;
  };

  using States = std::map<std::string, State>;  // by resource

  void work();
  static bool all_ready(const States& states);
  States serve(const DesiredDaemons& desired, const DesiredDaemons& before);
  void tell(States states);

  sys::Loop& loop_;
  const sys::Host& host_;
  Log log_;
  std::function<void()> on_change_;
  States states_;  // the loop's
  std::shared_ptr<int> alive_ = std::make_shared<int>();

  std::mutex mutex_;
  std::condition_variable wake_;
  DesiredDaemons desired_;  // written by the loop alone
  std::uint64_t desired_version_ = 0;
  bool ending_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gantry::agent
