// SPDX-License-Identifier: Apache-2.0
// Runs the MPS daemons that the offer needs, in its own thread, because starting a daemon takes
// seconds. A resource is offered only while its daemon answers.
#pragma once

#include "base/log/log.hpp"
#include "base/sys/background_task.hpp"
#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "node/resources/resources.hpp"
#include "sharing/mps/control_daemon.hpp"
#include "sharing/mps/daemon_plan.hpp"

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace gantry::agent {

class MpsSupervisor {
 public:
  // `on_change` is called in the loop when a daemon becomes ready or stops being ready.
  MpsSupervisor(sys::Loop& loop, const sys::Host& host, Log log, std::function<void()> on_change);
  ~MpsSupervisor() =
      default;  // the daemons keep running for their clients, and the next agent finds them
  MpsSupervisor(const MpsSupervisor&) = delete;
  MpsSupervisor& operator=(const MpsSupervisor&) = delete;

  // Sets the daemons that must run from now on; other daemons are stopped.
  void want(std::vector<mps::DaemonPlan> plans, const std::string& mps_root);

  const std::vector<mps::DaemonPlan>& plans() const {
    return desired_.plans;
  }  // the daemons that must run now
  bool all_ready() const { return all_ready(states_); }
  // Removes resources whose daemon is not ready from `offer`, and adds the reason as a note.
  void withdraw_unready(resources::Offer& offer) const;

 private:
  struct State {  // why a daemon is not ready; "": it answers
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
  States states_;  // used only in the loop
  std::shared_ptr<int> alive_ = std::make_shared<int>();

  std::mutex mutex_;
  DesiredDaemons desired_;    // written only by the loop
  DesiredDaemons before_;     // of the last round; used only by the task
  sys::BackgroundTask task_;  // last, because it uses everything above
};

}  // namespace gantry::agent
