// SPDX-License-Identifier: Apache-2.0
// The GPU time that tenants used, in time windows, for display; and the time that they used without
// reporting it, found by comparison with the driver's own measurement.
#pragma once

#include "sharing/policy/turn_scheduler.hpp"

#include <deque>

namespace gantry::policy {

// Decides how much the driver's percentages prove. In each of its samples the driver checks only a
// few times who uses the GPU. A tenant whose requests coincide with these checks is seen much too
// often or too rarely, and other tenants are then seen too rarely or too often. (On an H200: 77 %
// seen for 29 % used, for seconds.) So an excess is excused by what other tenants lack, but not for
// a tenant that reports no use at all, and not forever.
class UsageVerifier {
 public:
  static constexpr double kIdlePercent = 2;                      // per cent
  static constexpr Time kMaxExcused = std::chrono::seconds(60);  // without interruption
  struct UsageClaim {
    double driver = 0;
    double reported = 0;
  };
  // For all tenants of a GPU that the driver measured in the same window: how much of the
  // measurement is proven.
  std::map<TenantId, double> verified(const std::map<TenantId, UsageClaim>& said, Time now);

 private:
  std::map<TenantId, Time> excused_since_;
};

class Meter {
 public:
  static constexpr Time kHistory = std::chrono::seconds(15);  // how far back it can look
  static constexpr Time kResolution =
      std::chrono::milliseconds(20);  // notes closer than this are merged
  // The driver's samples are a sixth of a second to a second long and arrive late. Turns are
  // shorter, so only long windows show whether a tenant used more than it reported.
  static constexpr Time kComparisonWindow = std::chrono::seconds(5);
  static constexpr double kTolerance = 7;  // points

  // Records what the turn scheduler has charged; every 100 ms is enough.
  void note(TenantId id, const TenantView& view, Time now);
  void forget(TenantId id);

  // Percentage of the GPU's time in the window before `now`. For a tenant that is younger than the
  // window, the window is shorter.
  double percent(TenantId id, Time window, Time now) const;
  // The same, but only what its processes reported, without other charges.
  double reported_percent(TenantId id, Time window, Time now) const;

  // The driver measured `percent` of the GPU's time between `from` and `to` for all processes of
  // the tenant together. Returns the time that was not charged, for TurnScheduler::charge, once for
  // every kComparisonWindow. No time counts twice, so windows may overlap.
  Time unreported(TenantId id, double percent, Time from, Time to);

 private:
  struct Note {
    Time when;
    Time used;
    Time reported;  // used, without corrections
  };
  struct Tenant {
    std::deque<Note> notes;
    Time settled = Time::min();  // the driver's percentages are known until here
    Time judged = Time::min();   // and compared until here
    double seen = 0;             // measured by the driver since then, in nanoseconds
  };
  double percent(TenantId id, Time window, Time now, Time Note::*what) const;
  // Interpolates between two notes as if the time had been used evenly.
  static double at(const Tenant& tenant, Time when, Time Note::*what);

  std::map<TenantId, Tenant> tenants_;
};

}  // namespace gantry::policy
