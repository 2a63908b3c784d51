// SPDX-License-Identifier: Apache-2.0
#include "gantry/share_table.hpp"

#include "base/core/text.hpp"
#include "gantry/share_commands.hpp"
#include "gantry/table.hpp"

#include <fmt/format.h>

#include <set>

namespace gantry::cli {
namespace {

using daemon::GpuState;
using daemon::ShareState;

constexpr const char* kNone =
    "There are no shares. Run `gantry share run --memory 10GiB -- COMMAND` to start a command in "
    "one, or `gantry share create NAME` to create one for containers.\n";

std::string compute_word(const policy::Share& share) {
  if (!share.time_limited) return "-";
  const auto& time_policy = share.time_policy;
  if (time_policy.percent == 0) return fmt::format("weight {}", time_policy.weight);
  const bool more = time_policy.excess == policy::Excess::Allowed;
  return fmt::format("{}%{}", time_policy.percent, more ? "+" : "");
}

std::string_view groups_of(std::string_view uuid, std::size_t groups) {
  std::size_t end = uuid.find('-');
  for (; groups != 0 && end < uuid.size(); --groups) end = uuid.find('-', end + 1);
  return uuid.substr(0, end);
}

// The shortest beginnings of the UUIDs that tell the GPUs of these shares apart, mostly like
// "GPU-8d3c1f0e".
class ShortNames {
 public:
  explicit ShortNames(const std::vector<ShareState>& shares) {
    std::set<std::string_view> whole;
    for (const auto& state : shares) {
      for (const auto& gpu : state.gpus) whole.insert(gpu.uuid.text);
    }
    for (bool apart = false; !apart && groups_ < kGroups;) {
      std::set<std::string_view> cut;
      ++groups_;
      for (const auto uuid : whole) cut.insert(groups_of(uuid, groups_));
      apart = cut.size() == whole.size();
    }
  }
  std::string of(const model::GpuUuid& uuid) const {
    return std::string(groups_of(uuid.text, groups_));
  }

 private:
  static constexpr std::size_t kGroups = 5;
  std::size_t groups_ = 0;
};

// "1.5GiB / 10GiB": used and limit. Shows NVML's value if it is higher than the processes' own
// count.
std::string memory_words(const GpuState& gpu) {
  return fmt::format("{} / {}", human_bytes(std::max(gpu.memory_held, gpu.memory_used)),
                     gpu.memory_limit == UINT64_MAX ? "-" : human_bytes(gpu.memory_limit));
}

std::string time_words(const ShareState& state, const GpuState& gpu) {
  const double used = gpu.measured >= 0 && !state.share.time_limited ? gpu.measured : gpu.used;
  return fmt::format("{:.1f}% / {}", used * 100, compute_word(state.share));
}

std::uint32_t waiting(const ShareState& state, std::size_t gpu) {
  std::uint32_t threads = 0;
  for (const auto& process : state.processes) {
    if (gpu < process.gpus.size()) threads += process.gpus[gpu].waiting;
  }
  return threads;
}

void add_processes(const ShareState& state, Table& table) {
  for (const auto& process : state.processes) {
    std::uint64_t memory = 0;
    std::uint64_t launches = 0;
    for (const auto& gpu : process.gpus) {
      memory += std::max(gpu.memory_held, gpu.memory_used);
      launches += gpu.launches;
    }
    table.add({state.share.name, fmt::to_string(process.pid), human_bytes(memory),
               fmt::to_string(launches), process.command});
  }
}

}  // namespace

std::string shares_table(const std::vector<ShareState>& shares) {
  if (shares.empty()) return kNone;
  Table table(
      {"NAME", "GPU", "MEMORY", "COMPUTE", "PRIORITY", "POLICY", "BACKEND", "PROCESSES", "LIVES"});
  const ShortNames names(shares);
  for (const auto& state : shares) {
    for (const auto& gpu : state.gpus) {
      table.add({state.share.name, names.of(gpu.uuid), format_limit(gpu.memory_limit),
                 compute_word(state.share),
                 std::string(to_string(state.share.time_policy.priority)),
                 std::string(to_string(state.share.violation)),
                 std::string(to_string(state.share.backend)), fmt::to_string(process_count(state)),
                 state.held ? "with its command" : "named"});
    }
  }
  return table.text() + foreign_processes_text(shares);
}

std::string foreign_processes_text(const std::vector<ShareState>& shares) {
  std::string text;
  const ShortNames names(shares);
  std::set<std::string> told;
  for (const auto& state : shares) {
    for (const auto& gpu : state.gpus) {
      if (gpu.unmanaged.empty() || !told.insert(gpu.uuid.text).second) continue;
      std::vector<std::string> who;
      for (const auto& stranger : gpu.unmanaged)
        who.push_back(fmt::format("{} ({}, {})", stranger.pid, stranger.command,
                                  human_bytes(stranger.memory_used)));
      text += fmt::format(
          "Warning: processes outside of the shares use {}, and the shares' time limits do not "
          "slow them down: {}. Run them with `gantry share run`, or move them to another GPU or a "
          "MIG instance.\n",
          names.of(gpu.uuid), fmt::join(who, ", "));
    }
  }
  return text.empty() ? text : "\n" + text;
}

std::string usage_table(const std::vector<ShareState>& shares) {
  if (shares.empty()) return kNone;
  Table table({"NAME", "GPU", "MEMORY", "GPU TIME", "GATE", "WAITING", "REFUSED", "PROCESSES"});
  Table processes({"SHARE", "PID", "MEMORY", "LAUNCHES", "COMMAND"});
  std::string found;
  const ShortNames names(shares);
  for (const auto& state : shares) {
    for (std::size_t i = 0; i < state.gpus.size(); ++i) {
      const auto& gpu = state.gpus[i];
      table.add({state.share.name, names.of(gpu.uuid), memory_words(gpu), time_words(state, gpu),
                 gpu.gate, fmt::to_string(waiting(state, i)), fmt::to_string(state.refused),
                 fmt::to_string(process_count(state))});
    }
    add_processes(state, processes);
    for (const auto& finding : state.findings) {
      found += fmt::format("{}: {}{}\n", state.share.name, finding.text,
                           finding.stopped ? " (stopped)" : "");
    }
  }
  auto text = table.text();
  if (!processes.empty()) text += fmt::format("\n{}", processes.text());
  if (!found.empty()) text += "\nFound by the auditor:\n" + found;
  return text + foreign_processes_text(shares);
}

}  // namespace gantry::cli
