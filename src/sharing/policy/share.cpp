// SPDX-License-Identifier: Apache-2.0
#include "sharing/policy/share.hpp"

#include "sharing/policy/enum_names_internal.hpp"

namespace gantry::policy {
namespace {

// A percentage and a weight are alternatives; each replaces the other.
Status change_time(const ShareChanges& changes, Share& share) {
  auto& time = share.time_policy;
  const bool by_percent = changes.percent.value_or(0) != 0;
  if (by_percent && changes.weight)
    return Error(Errc::Invalid,
                 "compute and weight are both given: a share has either a fixed percentage of a "
                 "GPU's time or a weight")
        .advise("use only one, `--compute 30%` or `--weight 200`");
  if (by_percent) {
    // A percentage without further options is a hard cap.
    if (time.percent == 0) time.excess = Excess::Refused;
    time.percent = *changes.percent;
    time.weight = TimePolicy{}.weight;
    share.time_limited = true;
  } else if (changes.weight || changes.percent) {
    time.percent = 0;
    time.excess = Excess::Allowed;
    time.weight = changes.weight.value_or(TimePolicy{}.weight);
    share.time_limited = changes.weight.has_value();
  }
  time.excess = changes.excess.value_or(time.excess);
  if (time.excess == Excess::Refused && time.percent == 0)
    return Error(Errc::Invalid, "a hard cap needs a percentage")
        .advise("add it: `--compute 30% --hard`");
  return {};
}

}  // namespace

std::string_view to_string(ViolationPolicy value) {
  return enum_name(value);
}
std::string_view to_string(UnattachedPolicy value) {
  return enum_name(value);
}
std::string_view to_string(ContextMemory value) {
  return enum_name(value);
}
std::string_view to_string(Backend value) {
  return enum_name(value);
}
std::string_view to_string(Excess value) {
  return enum_name(value);
}
std::string_view to_string(Priority value) {
  return enum_name(value);
}

Result<Share> apply_changes(Share share, const ShareChanges& changes) {
  if (changes.gpus) share.gpus = *changes.gpus;
  if (changes.memory == MemoryLimit{}) {
    share.memory.reset();
  } else if (changes.memory) {
    share.memory = changes.memory;
  }
  GANTRY_CHECK(change_time(changes, share));
  share.time_policy.priority = changes.priority.value_or(share.time_policy.priority);
  share.violation = changes.violation.value_or(share.violation);
  share.unattached = changes.unattached.value_or(share.unattached);
  share.context_memory = changes.context_memory.value_or(share.context_memory);
  share.backend = changes.backend.value_or(share.backend);
  return share;
}

ShareChanges to_changes(const Share& share) {
  ShareChanges changes{.gpus = share.gpus,
                       .memory = share.memory.value_or(MemoryLimit{}),
                       .percent = share.time_policy.percent,
                       .excess = share.time_policy.excess,
                       .priority = share.time_policy.priority,
                       .violation = share.violation,
                       .unattached = share.unattached,
                       .context_memory = share.context_memory,
                       .backend = share.backend};
  const bool by_weight = share.time_limited && share.time_policy.percent == 0;
  if (by_weight) changes.weight = share.time_policy.weight;
  return changes;
}

}  // namespace gantry::policy
