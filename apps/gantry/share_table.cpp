// SPDX-License-Identifier: Apache-2.0
#include "gantry/share_table.hpp"

#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/share_commands.hpp"
#include "gantry/table.hpp"
#include "gantry/terminal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace gantry::cli {
namespace {

using daemon::GpuState;
using daemon::ShareState;

constexpr const char* kNone =
    "There are no shares. Run `gantry share run --memory 10GiB -- COMMAND` to start a command in "
    "one, or `gantry share create NAME` to create one for containers.\n";
constexpr const char* kRunInShares =
    "Run them with `gantry share run`, or move them to another GPU or a MIG instance.";

std::string no_shares_text(const Screen& screen) {
  return wrap_lines(sys::with_root(kNone, screen.root), screen.width);
}

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

double used_time(const ShareState& state, const GpuState& gpu) {
  return gpu.measured >= 0 && !state.share.time_limited ? gpu.measured : gpu.used;
}

std::string time_words(const ShareState& state, const GpuState& gpu) {
  return fmt::format("{:.1f}% / {}", used_time(state, gpu) * 100, compute_word(state.share));
}

std::uint32_t waiting(const ShareState& state, std::size_t gpu) {
  std::uint32_t threads = 0;
  for (const auto& process : state.processes) {
    if (gpu < process.gpus.size()) threads += process.gpus[gpu].waiting;
  }
  return threads;
}

double used_memory(const GpuState& gpu) {
  const auto all = gpu.memory_limit == UINT64_MAX ? gpu.memory_total : gpu.memory_limit;
  return all == 0 ? 0
                  : static_cast<double>(std::max(gpu.memory_held, gpu.memory_used)) /
                        static_cast<double>(all);
}

// The busiest first; shares that do nothing by name.
void sort_by_use(std::vector<ShareState>& shares) {
  const auto most = [](const ShareState& state) {
    double time = 0;
    double memory = 0;
    for (const auto& gpu : state.gpus) {
      time = std::max(time, used_time(state, gpu));
      memory = std::max(memory, used_memory(gpu));
    }
    return std::pair(time, memory);
  };
  std::stable_sort(shares.begin(), shares.end(), [&](const ShareState& a, const ShareState& b) {
    const auto left = most(a);
    const auto right = most(b);
    return left != right ? left > right : a.share.name < b.share.name;
  });
}

// "####......" in front of a value.
std::string with_bar(double part, std::size_t length, const std::string& value) {
  if (length == 0) return value;
  const auto full =
      static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * static_cast<double>(length) + 0.5);
  return std::string(full, '#') + std::string(length - full, '.') + " " + value;
}

std::size_t width_of(const std::string& text) {
  std::size_t widest = 0;
  for (const auto line : lines(text)) widest = std::max(widest, line.size());
  return widest;
}

constexpr std::size_t kAllColumns = 8;
constexpr std::size_t kLeastColumns = 4;  // name, GPU, memory, time

std::string usage_rows(const std::vector<ShareState>& shares, std::size_t bar,
                       std::size_t columns) {
  const ShortNames names(shares);
  const auto cut = [&](std::vector<std::string> row) {
    row.resize(columns);
    return row;
  };
  Table table(
      cut({"NAME", "GPU", "MEMORY", "GPU TIME", "GATE", "WAITING", "REFUSED", "PROCESSES"}));
  for (const auto& state : shares) {
    for (std::size_t i = 0; i < state.gpus.size(); ++i) {
      const auto& gpu = state.gpus[i];
      table.add(cut({state.share.name, names.of(gpu.uuid),
                     with_bar(used_memory(gpu), bar, memory_words(gpu)),
                     with_bar(used_time(state, gpu), bar, time_words(state, gpu)), gpu.gate,
                     fmt::to_string(waiting(state, i)), fmt::to_string(state.refused),
                     fmt::to_string(process_count(state))}));
    }
  }
  return table.text();
}

std::string fitting_usage_rows(const std::vector<ShareState>& shares, const Screen& screen) {
  constexpr std::size_t kShortestBar = 5;
  constexpr std::size_t kLongestBar = 20;
  auto text = usage_rows(shares, 0, kAllColumns);
  if (screen.width == 0) return text;
  for (auto columns = kAllColumns - 1; columns >= kLeastColumns && width_of(text) > screen.width;
       --columns)
    text = usage_rows(shares, 0, columns);
  const auto room = screen.width - std::min(screen.width, width_of(text));
  if (width_of(text) > screen.width || room / 2 < kShortestBar + 1) return text;
  return usage_rows(shares, std::min(room / 2 - 1, kLongestBar), kAllColumns);
}

void add_processes(const ShareState& state, Table& table) {
  std::vector<std::pair<std::uint64_t, const daemon::ProcessState*>> by_memory;
  for (const auto& process : state.processes) {
    std::uint64_t memory = 0;
    for (const auto& gpu : process.gpus) memory += std::max(gpu.memory_held, gpu.memory_used);
    by_memory.emplace_back(memory, &process);
  }
  std::stable_sort(by_memory.begin(), by_memory.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [memory, process] : by_memory) {
    std::uint64_t launches = 0;
    for (const auto& gpu : process->gpus) launches += gpu.launches;
    table.add({state.share.name, fmt::to_string(process->pid), human_bytes(memory),
               fmt::to_string(launches), process->command});
  }
}

// The command is the last column.
std::string cut_lines(const std::string& text, const Screen& screen) {
  if (screen.width == 0 || screen.whole_commands) return text;
  std::string cut;
  for (const auto line : lines(text)) {
    const bool fits = line.size() <= screen.width || screen.width < 4;
    cut += fits ? std::string(line) : std::string(line.substr(0, screen.width - 3)) + "...";
    cut += '\n';
  }
  return cut;
}

}  // namespace

std::string shares_table(const std::vector<ShareState>& shares, const Screen& screen) {
  if (shares.empty()) return no_shares_text(screen);
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
  return table.text(screen.width) + foreign_processes_text(shares, screen);
}

std::string foreign_processes_text(const std::vector<ShareState>& shares, const Screen& screen) {
  const auto advice = sys::with_root(kRunInShares, screen.root);
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
          "slow them down: {}. {}\n",
          names.of(gpu.uuid), fmt::join(who, ", "), advice);
    }
  }
  return text.empty() ? text : wrap_lines("\n" + text, screen.width);
}

std::string usage_table(std::vector<ShareState> shares, const Screen& screen) {
  if (shares.empty()) return no_shares_text(screen);
  sort_by_use(shares);
  Table processes({"SHARE", "PID", "MEMORY", "LAUNCHES", "COMMAND"});
  std::string found;
  for (const auto& state : shares) {
    add_processes(state, processes);
    for (const auto& finding : state.findings) {
      found += fmt::format("{}: {}{}\n", state.share.name, finding.text,
                           finding.stopped ? " (stopped)" : "");
    }
  }
  auto text = fitting_usage_rows(shares, screen);
  if (!processes.empty()) text += "\n" + cut_lines(processes.text(), screen);
  if (!found.empty()) text += "\nFound by the auditor:\n" + wrap_lines(found, screen.width);
  return text + foreign_processes_text(shares, screen);
}

}  // namespace gantry::cli
