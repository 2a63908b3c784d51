// SPDX-License-Identifier: Apache-2.0
// A share of a GPU: what a tenant may have of it, and what happens where that does not hold. One
// value, written as flags or as JSON with the same words.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/inventory.hpp"
#include "sharing/policy/time_policy.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::policy {

enum class Violation : std::uint8_t { Report, Stop };       // a tenant past its limits
enum class Unattached : std::uint8_t { Refuse, Pass };      // the fence cannot attach: cuInit fails
enum class ContextMemory : std::uint8_t { Counted, Free };  // contexts and modules
enum class Backend : std::uint8_t { Auto, Fence, Mps, Mig, TimeSlicing };

// "report", "stop"; "refuse", "pass"; "counted", "free"; "auto", "fence", "mps", "mig",
// "time-slicing"; "cap", "work-conserving"; "low", "normal", "high".
std::string_view to_string(Violation value);
std::string_view to_string(Unattached value);
std::string_view to_string(ContextMemory value);
std::string_view to_string(Backend value);
std::string_view to_string(Excess value);
std::string_view to_string(Priority value);

// Bytes, or per cent of the card's memory.
struct MemoryLimit {
  std::uint64_t bytes = 0;
  std::uint32_t percent = 0;  // not 0: instead of bytes
  bool operator==(const MemoryLimit&) const = default;

  // Whole MiB for a per cent.
  std::uint64_t on(std::uint64_t card_bytes) const;
};

// "10GiB", "10Gi", "10G" (all 2^30, as docker has it), "10GB" (10^9), "1.5GiB", "50%", "1048576".
Result<MemoryLimit> parse_memory_limit(std::string_view text);
std::string to_string(const MemoryLimit& memory);  // the shortest exact form: "10GiB", "50%"

struct Share {
  std::string name;                   // a directory entry: letters, digits, '-', '_', '.'
  std::vector<model::GpuUuid> gpus;   // empty: any one
  std::optional<MemoryLimit> memory;  // none: no limit
  TimePolicy time_policy;             // per cent or weight, cap, priority
  bool time_limited = false;          // a compute per cent or a weight was asked for
  Violation violation = Violation::Report;
  Unattached unattached = Unattached::Refuse;
  ContextMemory context_memory = ContextMemory::Counted;
  Backend backend = Backend::Auto;
  bool operator==(const Share&) const = default;
};

// The same as words, the way flags and JSON have it. "" is: not said.
struct ShareText {
  std::string name;
  std::string gpus;            // "any", or UUIDs with commas
  std::string memory;          // "10GiB", "50%", "none"
  std::string compute;         // "30%", "none"
  std::string weight;          // "200"; 100 is the usual one
  std::string excess;          // "cap" (usual with a per cent), "work-conserving"
  std::string priority;        // "low", "normal", "high"
  std::string on_violation;    // "report", "stop"
  std::string unattached;      // "refuse", "pass"
  std::string context_memory;  // "counted", "free"
  std::string backend;         // "auto", "fence", "mps", "mig", "time-slicing"
  bool operator==(const ShareText&) const = default;
};

// Invalid, with what is wrong, why, and an example.
Result<Share> parse_share(const ShareText& text);
// What `text` says in place of what the share has: for `share set`. The name stays.
Result<Share> apply_changes(Share share, const ShareText& text);
ShareText to_share_text(const Share& share);

std::string to_json(const Share& share);  // one line
// Corrupt for what is no JSON object of the words above, Invalid as share_from; an unknown key is
// an error: half a limit is none.
Result<Share> share_from_json(std::string_view text);

// More promised than there is: an error unless somebody said that it is wanted.
enum class Overcommit : std::uint8_t { Refused, Allowed };
struct GpuCapacity {
  model::GpuUuid uuid;
  std::uint64_t memory_bytes = 0;
};
// Whether `added` fits beside the shares that the card has already. One of the same name is
// replaced; what it takes no more of than that one did is not refused.
Status check_fits(const Share& added, std::span<const Share> present, const GpuCapacity& card,
                  Overcommit overcommit);

inline constexpr std::size_t kMaxNameLength = 63;     // FenceLimits.share with its end
inline constexpr std::size_t kMaxGpusPerShare = 64;   // FENCE_MAX_GPUS
inline constexpr std::size_t kMaxJsonLength = 16384;  // of a share as JSON

}  // namespace gantry::policy
