// SPDX-License-Identifier: Apache-2.0
// Shared by the files that implement `gantry share`.
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
void add_share_watch(CLI::App& share, Context& context, Action& chosen);

// The limits as typed on the command line.
struct ShareFlags {
  policy::ShareText text;
  std::vector<std::string> gpus;  // index or UUID
  bool hard = false;
  bool work_conserving = false;
  bool overcommit = false;

  policy::ShareText words() const;  // without the GPUs
  policy::Overcommit overcommitted() const {
    return overcommit ? policy::Overcommit::Allowed : policy::Overcommit::Refused;
  }
};
void add_limit_flags(CLI::App& command, ShareFlags& flags);
// Adds the flags that cannot change later: the GPUs, and what enforces the limits.
void add_backend_flags(CLI::App& command, ShareFlags& flags);

// Checks the flags before the machine is read. Invalid if they are wrong.
Status check_new_share(const ShareFlags& flags);
Status check_changes(const ShareFlags& flags);
// For a command's callback: if the status is an error, ends parsing with it as wrong usage.
void fail_usage(const Status& words);

// The limits with UUIDs in place of indices. NotFound if there is no such GPU; the error lists the
// GPUs that exist.
Result<policy::ShareText> resolve_share_text(const ShareFlags& flags,
                                             const model::Inventory& machine);

// Reads the machine. Starts NVML only if there are MIG instances, unless `nvml` says otherwise.
// NotFound if the machine has no GPU.
Result<model::Inventory> read_machine(const sys::Host& host,
                                      probe::NvmlUse nvml = probe::NvmlUse::ForMig);

// The same, with the values that these limits need.
Result<model::Inventory> read_machine_for(const ShareFlags& flags, const sys::Host& host);

// The first GPU without MIG instances. NotFound if every GPU has some.
Result<model::GpuUuid> any_gpu(const model::Inventory& machine);

// Says that a share without any limit may use the whole GPU. Nothing for hardware shares and for
// time-slicing, which have no such limits.
void print_if_unlimited(const policy::Share& share, std::string_view command,
                        const Context& context);

// "10GiB"; "none" if there is no limit.
std::string format_limit(std::uint64_t bytes);

}  // namespace gantry::cli
