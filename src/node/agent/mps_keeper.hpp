// SPDX-License-Identifier: Apache-2.0
// Keeps the MPS daemons that the offer needs, in a thread of its own: starting one takes seconds. A
// resource is offered once its daemon answers, and withdrawn while it does not.
#pragma once

#include "base/sys/host.hpp"
#include "base/sys/loop.hpp"
#include "node/agent/log.hpp"
#include "node/resources/resources.hpp"
#include "sharing/mps/control.hpp"
#include "sharing/mps/plan.hpp"

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gantry::agent {

class MpsKeeper {
 public:
  // `on_change`, in the loop: something became ready, or is no longer.
  MpsKeeper(sys::Loop& loop, const sys::Host& host, Log log, std::function<void()> on_change);
  ~MpsKeeper();  // daemons go on: their clients do, and the next agent finds them
  MpsKeeper(const MpsKeeper&) = delete;
  MpsKeeper& operator=(const MpsKeeper&) = delete;

  // The daemons from now on; those that are not among them are ended.
  void want(std::vector<mps::DaemonPlan> plans, const std::string& mps_root);

  const std::vector<mps::DaemonPlan>& plans() const { return wish_.plans; }  // those wanted now
  bool all_ready() const { return all_ready(states_); }
  // Takes out of `offer` what has no daemon yet, with the reason as a note.
  void hold_back(resources::Offer& offer) const;

 private:
  struct State {  // of a daemon; "": it answers
    std::string why = "its MPS daemon is being started";
  };
  struct Wish {
    std::vector<mps::DaemonPlan> plans;
    std::string root;
    bool operator==(const Wish&) const = default;
  };

  using States = std::map<std::string, State>;  // by resource

  void work();
  static bool all_ready(const States& states);
  States serve(const Wish& wish, const Wish& before);
  void tell(States states);

  sys::Loop& loop_;
  const sys::Host& host_;
  Log log_;
  std::function<void()> on_change_;
  States states_;  // the loop's
  std::shared_ptr<int> alive_ = std::make_shared<int>();

  std::mutex mutex_;
  std::condition_variable wake_;
  Wish wish_;  // written by the loop alone
  std::uint64_t wishes_ = 0;
  bool ending_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gantry::agent
