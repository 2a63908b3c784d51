// SPDX-License-Identifier: Apache-2.0
// A wrong clock: apt says "Release file is not valid yet", TLS says that a certificate is not valid
// yet or has expired, make builds again what is newer than now.
#include "install/preflight/judge_internal.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

namespace gantry::preflight {
namespace {

constexpr std::int64_t kHour = 3600;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::int64_t kYear = 31'556'952;
// Time zones of careless archives, and machines that set their clock in steps.
constexpr std::int64_t kTolerance = kDay;
// Nothing on the machine is newer than this many years: then rather the clock is wrong than the
// machine that old.
constexpr std::int64_t kMostYears = 10;

std::string date_of(std::int64_t time) {
  const auto value = static_cast<std::time_t>(time);
  std::tm parts{};
  if (::gmtime_r(&value, &parts) == nullptr) return fmt::to_string(time);
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", parts);
}

Severity severity_of(const DriverRequest& request) {
  return request.downloads() ? Severity::Blocks : Severity::Warns;
}

constexpr std::string_view kSetClock =
    "sudo timedatectl set-ntp true, or sudo date -u --set 'YYYY-MM-DD HH:MM', then sudo hwclock "
    "--systohc";

void judge_behind(Judgement& j, const std::vector<ClockFact::Evidence>& later) {
  const auto& clock = j.facts.clock;
  const auto newest = *std::max_element(
      later.begin(), later.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
  const auto drift = describe_duration(newest.time - clock.now);
  std::vector<std::string> seen;
  seen.reserve(later.size());
  for (const auto& evidence : later)
    seen.push_back(fmt::format("{} is of {}", evidence.what, date_of(evidence.time)));
  // One file may have been written while the clock was wrong in the other direction.
  if (clock.past.size() > 1 && later.size() * 2 < clock.past.size()) {
    j.warn("clock-uncertain", {.sentence = fmt::format("the clock says {}, but {}",
                                                       date_of(clock.now), fmt::join(seen, ", ")),
                               .cause = "The clock is wrong now, or it was when that was written.",
                               .remedy = "timedatectl  # compare with another clock"});
    return;
  }
  j.add(severity_of(j.request), "clock-behind",
        {.sentence = fmt::format("the clock is behind by at least {}: it says {}, but {}", drift,
                                 date_of(clock.now), fmt::join(seen, ", ")),
         .cause = "Package lists and certificates are \"not valid yet\", so nothing can be "
                  "downloaded; options that switch apt's date check off only hide it.",
         .remedy = std::string(kSetClock)});
}

void judge_ahead(Judgement& j) {
  const auto& clock = j.facts.clock;
  const auto newest =
      *std::max_element(clock.past.begin(), clock.past.end(),
                        [](const auto& a, const auto& b) { return a.time < b.time; });
  if (clock.now - newest.time <= kMostYears * kYear) return;
  j.add(
      severity_of(j.request), "clock-ahead",
      {.sentence = fmt::format("the clock is probably ahead: it says {}, {} after the newest thing "
                               "on this machine ({}, {})",
                               date_of(clock.now), describe_duration(clock.now - newest.time),
                               newest.what, date_of(newest.time)),
       .cause = "Certificates and package lists seem to have expired.",
       .remedy = std::string(kSetClock)});
}

std::string count_of(std::int64_t number, std::string_view unit) {
  return fmt::format("{} {}{}", number, unit, number == 1 ? "" : "s");
}

}  // namespace

std::string describe_duration(std::int64_t seconds) {
  struct Unit {
    std::int64_t seconds;
    std::string_view name;
  };
  constexpr std::array kUnits{Unit{kYear, "year"}, Unit{kDay, "day"}, Unit{kHour, "hour"},
                              Unit{60, "minute"}, Unit{1, "second"}};
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    const auto whole = seconds / kUnits[i].seconds;
    if (whole == 0 && i + 1 < kUnits.size()) continue;
    const auto rest = i + 1 < kUnits.size() ? seconds % kUnits[i].seconds / kUnits[i + 1].seconds
                                            : std::int64_t{0};
    auto text = count_of(whole, kUnits[i].name);
    if (rest > 0) text += " and " + count_of(rest, kUnits[i + 1].name);
    return text;
  }
  return "";
}

void judge_clock(Judgement& judgement) {
  const auto& clock = judgement.facts.clock;
  if (clock.past.empty()) return;
  std::vector<ClockFact::Evidence> later;
  for (const auto& evidence : clock.past) {
    if (evidence.time > clock.now + kTolerance) later.push_back(evidence);
  }
  if (!later.empty()) {
    judge_behind(judgement, later);
  } else {
    judge_ahead(judgement);
  }
}

}  // namespace gantry::preflight
