// SPDX-License-Identifier: Apache-2.0
// What is kept in /var/lib/gantry/vgpu: which vGPUs should exist (mediated devices and vendor-VFIO
// types are lost at a reboot), the change that is under way, and the names of types.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"
#include "vm/vgpu/plan.hpp"
#include "vm/vgpu/read_host.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::vgpu {

inline constexpr std::string_view kStateDirectory = "/var/lib/gantry/vgpu";
inline constexpr std::string_view kIntentPath = "/var/lib/gantry/vgpu/intent.json";
inline constexpr std::string_view kJournalPath = "/var/lib/gantry/vgpu/journal.json";
inline constexpr std::string_view kTypesPath = "/var/lib/gantry/vgpu/types.json";
inline constexpr std::string_view kLockPath = "/var/lib/gantry/vgpu/lock";

inline constexpr std::size_t kMaxStoredVgpus = 4096;

// The vGPUs that should exist. A GPU that is not named here is not managed.
struct Intent {
  std::vector<VgpuSpec> vgpus;
  bool operator==(const Intent&) const = default;
  // The intent after a change of these GPUs.
  Intent with(const std::vector<model::PciAddress>& gpus, const std::vector<VgpuSpec>& specs) const;
  std::vector<model::PciAddress> gpus() const;
};

// A change that began. It is removed when the change is complete or undone, so a file that is
// there means that a program was killed.
struct Journal {
  std::string command;  // "apply", "create"
  std::vector<model::PciAddress> gpus;
  std::vector<VgpuSpec> before;    // the vGPUs of these GPUs before the change
  std::vector<VgpuSpec> after;     // and after it
  std::vector<std::string> steps;  // for people
  bool operator==(const Journal&) const = default;
};

std::string to_json(const Intent& intent);
std::string to_json(const Journal& journal);
std::string to_json(const KnownTypes& types);
// Corrupt if the text is not one that to_json writes or exceeds the limits.
Result<Intent> parse_intent(std::string_view text);
Result<Journal> parse_journal(std::string_view text);
Result<KnownTypes> parse_known_types(std::string_view text);

// Without the files: an empty intent, no journal, no types. Corrupt files are errors that name the
// file; a damaged list of types is ignored, because it is learnt again.
Result<Intent> read_intent(const sys::Host& host);
Result<std::optional<Journal>> read_journal(const sys::Host& host);
KnownTypes read_known_types(const sys::Host& host);

// Held while vGPUs are changed. Busy, with the process that has it, if another Gantry is at work.
// The kernel releases it when the process ends.
class ChangeLock {
 public:
  static Result<ChangeLock> take(const sys::Host& host);

 private:
  explicit ChangeLock(sys::UniqueFd fd) : fd_(std::move(fd)) {}
  sys::UniqueFd fd_;
};

}  // namespace gantry::vgpu
