// SPDX-License-Identifier: Apache-2.0
// A GPU with MIG as values, behind the actions of a change: it can be killed at each act, refuse
// one, and forget its instances as a reboot does.
#pragma once

#include "gpu/mig_change/change.hpp"
#include "support/tree.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace gantry::mig_change {

struct KilledForTest {};

enum class ModeChange : std::uint8_t { Immediate, NeedsReset };

class FakeCard {
 public:
  explicit FakeCard(ModeChange mode = ModeChange::Immediate);

  const sys::Host& host() const { return host_; }
  static model::PciAddress address();

  // The actions; the process is killed before or after the act with this number. 0: never.
  Actions actions(int kill_at = 0, bool before = false);
  int acts() const { return acts_; }  // since the last actions()
  void reboot();                      // instances end; the mode stays, as on an A100
  void reset();                       // the pending mode comes into effect

  const mig::MigGpu& gpu() const { return gpu_; }
  std::string layout() const { return describe(layout_of(gpu_)); }
  std::string uuids() const;  // "MIG-1/0 MIG-2/0", by place

  // Asked before each act on the card: anything but success is its result.
  std::function<Status(std::string_view act)> fault;
  bool tells_profiles_only_with_mig = false;  // as drivers before 580
  bool works_with_reset = false;              // actions() has `reset`

 private:
  Status act(std::string_view name, const std::function<Status()>& work);
  Result<mig::MigGpu> read() const;
  Status create_instance(unsigned profile, const mig::Placement& place, unsigned& id);
  Status create_compute(unsigned instance, unsigned profile, unsigned& id);
  Status destroy_compute(unsigned instance, unsigned compute);
  Status destroy_instance(unsigned instance);
  Result<std::string> set_mode(bool enable);

  ModeChange mode_;
  test::Tree tree_;
  sys::Host host_;
  mig::MigGpu gpu_;
  int acts_ = 0;
  int kill_at_ = 0;
  bool before_ = false;
};

// The H200's profiles that tests use.
Layout halves();  // 3g.71gb at 0 and at 4
Layout mixed();   // 3g.71gb at 0, 2g.35gb at 4, 1g.18gb at 6
Layout off();

}  // namespace gantry::mig_change
