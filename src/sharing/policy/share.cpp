// SPDX-License-Identifier: Apache-2.0
#include "sharing/policy/share.hpp"

#include "base/core/text.hpp"
#include "sharing/policy/enum_names_internal.hpp"

#include <cctype>

namespace gantry::policy {
namespace {

constexpr std::uint32_t kMostWeight = 10'000;

Error invalid(std::string text) {
  return {Errc::Invalid, std::move(text)};
}

bool is_plain(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' || letter == '_' ||
         letter == '.';
}

Status check_name(std::string_view name) {
  const bool fine = !name.empty() && name.size() <= kMaxNameLength && name.front() != '.' &&
                    name.front() != '-' && std::all_of(name.begin(), name.end(), is_plain);
  if (fine) return {};
  return invalid(fmt::format(
      "name `{}`: must have at most {} letters, digits, `-`, `_` and `.`, and begin with a letter "
      "or digit, because it is also the name of a directory and a device: team-a",
      name.substr(0, 2 * kMaxNameLength), kMaxNameLength));
}

Result<std::vector<model::GpuUuid>> gpus_from(std::string_view text) {
  std::vector<model::GpuUuid> gpus;
  if (text == "any") return gpus;
  for (const auto piece : split(text, ',')) {
    const model::GpuUuid uuid{std::string(trim(piece))};
    const bool is_uuid = (uuid.text.starts_with("GPU-") || uuid.text.starts_with("MIG-")) &&
                         uuid.text.size() <= 96 &&
                         std::all_of(uuid.text.begin(), uuid.text.end(), is_plain);
    if (!is_uuid) {
      return invalid(
          fmt::format("gpus `{}`: not a UUID; write `any`, or UUIDs from `gantry info`, separated "
                      "by commas: GPU-8d3c1f0e-...",
                      uuid.text.substr(0, 96)));
    }
    if (std::find(gpus.begin(), gpus.end(), uuid) != gpus.end()) {
      return invalid(fmt::format("gpus: {} is named twice; name each GPU once", uuid.text));
    }
    gpus.push_back(uuid);
  }
  if (gpus.empty() || gpus.size() > kMaxGpusPerShare) {
    return invalid(fmt::format("gpus: name 1 to {} GPUs, or `any`", kMaxGpusPerShare));
  }
  return gpus;
}

Result<std::uint32_t> percent_from(std::string_view text) {
  auto digits = trim(text);
  if (digits.ends_with('%')) digits.remove_suffix(1);
  const auto percent = parse_u64(trim(digits));
  if (percent && *percent >= 1 && *percent <= 100) return static_cast<std::uint32_t>(*percent);
  return invalid(
      fmt::format("compute `{}`: must be a whole percentage from 1 to 100, or `none`: 30%", text));
}

Result<std::uint32_t> weight_from(std::string_view text) {
  const auto weight = parse_u64(trim(text));
  if (weight && *weight >= 1 && *weight <= kMostWeight) return static_cast<std::uint32_t>(*weight);
  return invalid(
      fmt::format("weight `{}`: must be a whole number from 1 to {}; the default is 100, and 200 "
                  "gives twice as much",
                  text, kMostWeight));
}

// A percentage and a weight are alternatives; each replaces the other.
Status read_compute(const ShareText& text, Share& share) {
  const bool percent = !text.compute.empty() && text.compute != "none";
  if (percent && !text.weight.empty()) {
    return invalid(
        "compute and weight are both given: a share has either a fixed percentage of a GPU's time "
        "or a weight; use only one, `--compute 30%` or `--weight 200`");
  }
  if (percent) {
    // A percentage without further options is a hard cap.
    if (share.time_policy.percent == 0) share.time_policy.excess = Excess::Refused;
    GANTRY_TRY(share.time_policy.percent, percent_from(text.compute));
    share.time_policy.weight = TimePolicy{}.weight;
    share.time_limited = true;
  } else if (!text.weight.empty() || text.compute == "none") {
    share.time_policy.percent = 0;
    share.time_policy.excess = Excess::Allowed;
    share.time_policy.weight = TimePolicy{}.weight;
    share.time_limited = !text.weight.empty();
    if (share.time_limited) {
      GANTRY_TRY(share.time_policy.weight, weight_from(text.weight));
    }
  }
  if (!text.excess.empty()) {
    GANTRY_TRY(share.time_policy.excess, parse_enum<Excess>("excess", text.excess));
  }
  if (share.time_policy.excess == Excess::Refused && share.time_policy.percent == 0) {
    return invalid("a hard cap needs a percentage; add it: `--compute 30% --hard`");
  }
  return {};
}

template <class E>
Status read_choice(std::string_view what, std::string_view word, E& into) {
  if (word.empty()) return {};
  GANTRY_TRY(into, parse_enum<E>(what, word));
  return {};
}

}  // namespace

std::string_view to_string(Violation value) {
  return enum_name(value);
}
std::string_view to_string(Unattached value) {
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

Result<Share> apply_changes(Share share, const ShareText& text) {
  if (!text.gpus.empty()) {
    GANTRY_TRY(share.gpus, gpus_from(text.gpus));
  }
  if (text.memory == "none") {
    share.memory.reset();
  } else if (!text.memory.empty()) {
    GANTRY_TRY(share.memory, parse_memory_limit(text.memory));
  }
  GANTRY_CHECK(read_compute(text, share));
  GANTRY_CHECK(read_choice("priority", text.priority, share.time_policy.priority));
  GANTRY_CHECK(read_choice("policy", text.on_violation, share.violation));
  GANTRY_CHECK(read_choice("unattached", text.unattached, share.unattached));
  GANTRY_CHECK(read_choice("context-memory", text.context_memory, share.context_memory));
  GANTRY_CHECK(read_choice("backend", text.backend, share.backend));
  return share;
}

Result<Share> parse_share(const ShareText& text) {
  GANTRY_CHECK(check_name(text.name));
  Share share;
  share.name = text.name;
  return apply_changes(std::move(share), text);
}

ShareText to_share_text(const Share& share) {
  ShareText text;
  text.name = share.name;
  for (const auto& gpu : share.gpus) text.gpus += (text.gpus.empty() ? "" : ",") + gpu.text;
  if (share.gpus.empty()) text.gpus = "any";
  text.memory = share.memory ? to_string(*share.memory) : "none";
  const bool by_weight = share.time_limited && share.time_policy.percent == 0;
  text.compute =
      share.time_policy.percent != 0 ? fmt::format("{}%", share.time_policy.percent) : "none";
  if (by_weight) text.weight = fmt::format("{}", share.time_policy.weight);
  text.excess = to_string(share.time_policy.excess);
  text.priority = to_string(share.time_policy.priority);
  text.on_violation = to_string(share.violation);
  text.unattached = to_string(share.unattached);
  text.context_memory = to_string(share.context_memory);
  text.backend = to_string(share.backend);
  return text;
}

}  // namespace gantry::policy
