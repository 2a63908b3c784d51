// SPDX-License-Identifier: Apache-2.0
// GPU time that tenants used, in windows: what people look at; and what they used without saying
// so, by comparison with what the driver itself counted.
#pragma once

#include "sharing/policy/turn_scheduler.hpp"

#include <deque>

namespace gantry::policy {

// What the driver's per cents prove. It looks who is on the GPU a few times in each of its samples:
// a tenant that comes in step with it, as requests do, is seen much too often or too rarely, and
// what one has too much of others have too little of. (On an H200: 77 % seen of 29 % used, for
// seconds.) So what others lack excuses an excess; not that of a tenant who says that it uses
// nothing, and not for ever.
class UsageVerifier {
 public:
  static constexpr double kIdlePercent = 2;                      // per cent
  static constexpr Time kMaxExcused = std::chrono::seconds(60);  // at a stretch
  struct UsageClaim {
    double driver = 0;
    double reported = 0;
  };
  // All tenants of a GPU of whom the driver said something, in the same window: how much of it is
  // proven.
  std::map<TenantId, double> verified(const std::map<TenantId, UsageClaim>& said, Time now);

 private:
  std::map<TenantId, Time> excused_since_;
};

class Meter {
 public:
  static constexpr Time kHistory = std::chrono::seconds(15);  // how far back it can tell
  static constexpr Time kResolution =
      std::chrono::milliseconds(20);  // notes closer than this are one
  // The driver counts in samples of a sixth to a whole second, and tells them late. Turns are
  // shorter than that: only long windows say whether somebody used more than it told.
  static constexpr Time kComparisonWindow = std::chrono::seconds(5);
  static constexpr double kTolerance = 7;  // points

  // Note what the controller has charged; every 100 ms is enough.
  void note(TenantId id, const TenantView& view, Time now);
  void forget(TenantId id);

  // Per cent of the GPU's time in the window before `now`; less than a window for a tenant that is
  // younger.
  double percent(TenantId id, Time window, Time now) const;
  // The same as its processes reported it, without what was charged beside that.
  double reported_percent(TenantId id, Time window, Time now) const;

  // The driver saw `percent` of the GPU's time between `from` and `to`, all processes of the tenant
  // together: what it was not charged for, for TurnScheduler::charge; told once for every
  // kComparisonWindow. No time is counted twice, so windows may overlap.
  Time unreported(TenantId id, double percent, Time from, Time to);

 private:
  struct Note {
    Time when;
    Time used;
    Time reported;  // used, without corrections
  };
  struct Tenant {
    std::deque<Note> notes;
    Time settled = Time::min();  // the driver's percentages are known up to here
    Time judged = Time::min();   // and compared up to here
    double seen = 0;             // by the driver since then, in nanoseconds
  };
  double percent(TenantId id, Time window, Time now, Time Note::*what) const;
  // Between two notes as if it had been used evenly.
  static double at(const Tenant& tenant, Time when, Time Note::*what);

  std::map<TenantId, Tenant> tenants_;
};

}  // namespace gantry::policy
