// SPDX-License-Identifier: Apache-2.0
#include "sharing/policy/meter.hpp"

#include <algorithm>
#include <cmath>

namespace gantry::policy {

std::map<TenantId, double> UsageVerifier::verified(const std::map<TenantId, UsageClaim>& said,
                                                   Time now) {
  double lacking = 0;
  for (const auto& [id, one] : said) lacking += std::max(one.reported - one.driver, 0.0);
  std::erase_if(excused_since_, [&](const auto& entry) { return !said.contains(entry.first); });
  std::map<TenantId, double> verified;
  for (const auto& [id, one] : said) {
    verified[id] = one.driver;
    const double excess = one.driver - one.reported;
    if (excess <= Meter::kTolerance || one.reported < kIdlePercent) {
      excused_since_.erase(id);
      continue;
    }
    const auto since = excused_since_.try_emplace(id, now).first->second;
    if (now - since < kMaxExcused) verified[id] = one.driver - std::min(excess, lacking);
  }
  return verified;
}

void Meter::note(TenantId id, const TenantView& view, Time now) {
  auto& notes = tenants_[id].notes;
  const Note note{now, view.used, view.used - view.corrected};
  // Of several close notes, the first stays and the last moves on with time.
  const bool close = notes.size() >= 2 && now - notes[notes.size() - 2].when < kResolution;
  if (close) notes.pop_back();
  if (notes.empty() || now > notes.back().when) notes.push_back(note);
  while (notes.size() > 2 && notes[1].when < now - kHistory) notes.pop_front();
}

void Meter::forget(TenantId id) {
  tenants_.erase(id);
}

double Meter::at(const Tenant& tenant, Time when, Time Note::*what) {
  const auto& notes = tenant.notes;
  const auto after = std::lower_bound(notes.begin(), notes.end(), when,
                                      [](const Note& note, Time time) { return note.when < time; });
  if (after == notes.end()) return ns(notes.back().*what);
  if (after == notes.begin()) return ns(notes.front().*what);
  const auto before = std::prev(after);
  const double part = ns(when - before->when) / ns(after->when - before->when);
  return ns(*before.*what) + part * ns(*after.*what - *before.*what);
}

double Meter::percent(TenantId id, Time window, Time now) const {
  return percent(id, window, now, &Note::used);
}

double Meter::reported_percent(TenantId id, Time window, Time now) const {
  return percent(id, window, now, &Note::reported);
}

double Meter::percent(TenantId id, Time window, Time now, Time Note::*what) const {
  const auto found = tenants_.find(id);
  if (found == tenants_.end() || found->second.notes.empty()) return 0;
  const auto from = std::max(now - window, found->second.notes.front().when);
  if (now <= from) return 0;
  const double used = at(found->second, now, what) - at(found->second, from, what);
  return std::clamp(100 * used / ns(now - from), 0.0, 100.0);
}

Time Meter::unreported(TenantId id, double percent, Time from, Time to) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end() || found->second.notes.empty()) return Time::zero();
  auto& tenant = found->second;
  from = std::max({from, tenant.settled, tenant.notes.front().when});
  if (to <= from) return Time::zero();
  tenant.seen += std::clamp(percent, 0.0, 100.0) / 100 * ns(to - from);
  tenant.settled = to;
  if (tenant.judged == Time::min()) tenant.judged = from;
  const auto window = to - tenant.judged;
  if (window < kComparisonWindow) return Time::zero();
  const double reported =
      at(tenant, to, &Note::reported) - at(tenant, tenant.judged, &Note::reported);
  const double missing = tenant.seen - reported;
  tenant.judged = to;
  tenant.seen = 0;
  return missing > kTolerance / 100 * ns(window) ? Time(std::llround(missing)) : Time::zero();
}

}  // namespace gantry::policy
