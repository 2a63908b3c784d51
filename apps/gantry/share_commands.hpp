// SPDX-License-Identifier: Apache-2.0
// What the files behind `gantry share` have in common.
#pragma once

#include "base/sys/host.hpp"
#include "gantry/command.hpp"
#include "gpu/model/inventory.hpp"
#include "gpu/probe/snapshot.hpp"
#include "sharing/daemon/client.hpp"
#include "sharing/policy/share.hpp"

#include <string>
#include <vector>

namespace gantry::cli {

void add_share_run(CLI::App& share, Context& context, Action& chosen);
void add_share_create(CLI::App& share, Context& context, Action& chosen);
void add_share_rm(CLI::App& share, Context& context, Action& chosen);
void add_share_list(CLI::App& share, Context& context, Action& chosen);
void add_share_top(CLI::App& share, Context& context, Action& chosen);
void add_share_set(CLI::App& share, Context& context, Action& chosen);
void add_share_explain(CLI::App& share, Context& context, Action& chosen);
void add_share_serve(CLI::App& share, Context& context, Action& chosen);

// The limits as they were typed.
struct ShareFlags {
  policy::ShareText text;
  std::vector<std::string> gpus;  // index or UUID
  bool hard = false;
  bool work_conserving = false;
  bool overcommit = false;

  policy::ShareText words() const;  // without its GPUs
  policy::Overcommit overcommitted() const {
    return overcommit ? policy::Overcommit::Allowed : policy::Overcommit::Refused;
  }
};
void add_limit_flags(CLI::App& command, ShareFlags& flags);
// What stays as long as the share: its GPUs, and who holds its limits.
void add_backend_flags(CLI::App& command, ShareFlags& flags);

// What can be said of the words alone, before anything is asked. Invalid.
Status check_new_share(const ShareFlags& flags);
Status check_changes(const ShareFlags& flags);
// For a command's callback: ends the reading of the command line, as wrong usage.
void fail_usage(const Status& words);

// With UUIDs in place of indices. NotFound for a GPU that is not there, with those that are.
Result<policy::ShareText> resolve_share_text(const ShareFlags& flags,
                                             const model::Inventory& machine);

// What the machine has; NVML is started only where there are MIG instances, unless asked for.
Result<model::Inventory> read_machine(const sys::Host& host,
                                      probe::NvmlUse nvml = probe::NvmlUse::ForMig);

// The same with what these limits need to be known.
Result<model::Inventory> read_machine_for(const ShareFlags& flags, const sys::Host& host);

// The first that has no instances.
Result<model::GpuUuid> any_gpu(const model::Inventory& machine);

// "10GiB" of bytes; "none" for no limit.
std::string format_limit(std::uint64_t bytes);

}  // namespace gantry::cli
