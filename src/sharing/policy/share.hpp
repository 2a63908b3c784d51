// SPDX-License-Identifier: Apache-2.0
// A share of a GPU: how much of it a tenant may use, and what happens if a limit is exceeded. It is
// written as flags or as JSON, with the same words.
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

enum class ViolationPolicy : std::uint8_t { Report, Stop };  // a tenant exceeds its limits
enum class UnattachedPolicy : std::uint8_t {
  Refuse,
  Pass
};                                                          // the fence cannot attach: cuInit fails
enum class ContextMemory : std::uint8_t { Counted, Free };  // contexts and modules
enum class Backend : std::uint8_t { Auto, Fence, Mps, Mig, TimeSlicing };

// "report", "stop"; "refuse", "pass"; "counted", "free"; "auto", "fence", "mps", "mig",
// "time-slicing"; "cap", "work-conserving"; "low", "normal", "high".
std::string_view to_string(ViolationPolicy value);
std::string_view to_string(UnattachedPolicy value);
std::string_view to_string(ContextMemory value);
std::string_view to_string(Backend value);
std::string_view to_string(Excess value);
std::string_view to_string(Priority value);

// Bytes, or a percentage of the GPU's memory.
struct MemoryLimit {
  std::uint64_t bytes = 0;
  std::uint32_t percent = 0;  // if not 0, used instead of bytes
  bool operator==(const MemoryLimit&) const = default;

  // Rounded to whole MiB for a percentage.
  std::uint64_t on(std::uint64_t card_bytes) const;
};

// Parses "10GiB", "10Gi", "10G" (all 2^30, as in docker), "10GB" (10^9), "1.5GiB", "50%",
// "1048576".
Result<MemoryLimit> parse_memory_limit(std::string_view text);
std::string to_string(const MemoryLimit& memory);  // the shortest exact form: "10GiB", "50%"

struct Share {
  std::string name;                   // a directory entry: letters, digits, '-', '_', '.'
  std::vector<model::GpuUuid> gpus;   // empty: any one GPU
  std::optional<MemoryLimit> memory;  // none: no limit
  TimePolicy time_policy;             // percentage or weight, cap, priority
  bool time_limited = false;          // a percentage or a weight was requested
  ViolationPolicy violation = ViolationPolicy::Report;
  UnattachedPolicy unattached = UnattachedPolicy::Refuse;
  ContextMemory context_memory = ContextMemory::Counted;
  Backend backend = Backend::Auto;
  bool operator==(const Share&) const = default;
};

// Changes to a share, for `share set`. nullopt: unchanged.
struct ShareChanges {
  std::optional<std::vector<model::GpuUuid>> gpus;  // empty: any one GPU
  std::optional<MemoryLimit> memory;                // MemoryLimit{}: no limit
  std::optional<std::uint32_t> percent;             // of the GPU's time; 0: no limit
  std::optional<std::uint32_t> weight;              // instead of a percentage
  std::optional<Excess> excess;
  std::optional<Priority> priority;
  std::optional<ViolationPolicy> violation;
  std::optional<UnattachedPolicy> unattached;
  std::optional<ContextMemory> context_memory;
  std::optional<Backend> backend;
  bool operator==(const ShareChanges&) const = default;
};

// The same as text, as in flags. "" means not given.
struct ShareText {
  std::string name;
  std::string gpus;            // "any", or UUIDs with commas
  std::string memory;          // "10GiB", "50%", "none"
  std::string compute;         // "30%", "none"
  std::string weight;          // "200"; the default is 100
  std::string excess;          // "cap" (default with a percentage), "work-conserving"
  std::string priority;        // "low", "normal", "high"
  std::string on_violation;    // "report", "stop"
  std::string unattached;      // "refuse", "pass"
  std::string context_memory;  // "counted", "free"
  std::string backend;         // "auto", "fence", "mps", "mig", "time-slicing"
  bool operator==(const ShareText&) const = default;
};

// Invalid if a text is wrong; the error says what is wrong, why, and gives an example.
Result<Share> parse_share(const ShareText& text);
Result<ShareChanges> parse_changes(const ShareText& text);  // without the name
Result<Priority> parse_priority(std::string_view word);

// Invalid if the result would have a percentage and a weight, or a hard cap without a percentage.
Result<Share> apply_changes(Share share, const ShareChanges& changes);
ShareChanges to_changes(const Share& share);  // those that turn a new share into this one

std::string to_json(const Share& share);  // one line, as in records and on the daemon's socket
// The same as commands print it with --json. 1, which had no number, spelt some keys with dashes
// and wrote 2^64-1 for no limit.
inline constexpr int kDocumentVersion = 2;
std::string to_document(const Share& share);
// Corrupt if it is not a JSON object of the values above, Invalid as for parse_share. An unknown
// key is an error, because a limit that is ignored is no limit.
Result<Share> share_from_json(std::string_view text);

// Whether the shares of a GPU may together have more than the GPU has: an error unless allowed.
enum class Overcommit : std::uint8_t { Refused, Allowed };
struct GpuCapacity {
  model::GpuUuid uuid;
  std::uint64_t memory_bytes = 0;
};
// Checks whether `added` fits on the GPU together with its other shares. It replaces a share with
// the same name; a resource of which it takes no more than that share did is not refused.
Status check_fits(const Share& added, std::span<const Share> present, const GpuCapacity& card,
                  Overcommit overcommit);

inline constexpr std::size_t kMaxNameLength = 63;     // FenceLimits.share with its terminator
inline constexpr std::size_t kMaxGpusPerShare = 64;   // FENCE_MAX_GPUS
inline constexpr std::size_t kMaxJsonLength = 16384;  // size of a share as JSON

}  // namespace gantry::policy
