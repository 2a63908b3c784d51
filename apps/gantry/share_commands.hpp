// SPDX-License-Identifier: Apache-2.0
// What the files behind `gantry share` have in common.
#pragma once

#include "gantry/command.hpp"
#include "keeper/client.hpp"
#include "model/inventory.hpp"
#include "probe/snapshot.hpp"
#include "share/share.hpp"
#include "sys/host.hpp"

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
  share::ShareText text;
  std::vector<std::string> gpus;  // index or UUID
  bool hard = false;
  bool work_conserving = false;
  bool overcommit = false;

  share::ShareText words() const;  // without its GPUs
  share::Overcommit overcommitted() const {
    return overcommit ? share::Overcommit::Allowed : share::Overcommit::Refused;
  }
};
void add_limit_flags(CLI::App& command, ShareFlags& flags);
// What stays as long as the share: its GPUs, and who holds its limits.
void add_place_flags(CLI::App& command, ShareFlags& flags);

// What can be said of the words alone, before anything is asked. Invalid.
Status check_new(const ShareFlags& flags);
Status check_changes(const ShareFlags& flags);
// For a command's callback: ends the reading of the command line, as wrong usage.
void refuse_wrong_words(const Status& words);

// With UUIDs in place of indices. NotFound for a GPU that is not there, with those that are.
Result<share::ShareText> words_of(const ShareFlags& flags, const model::Inventory& machine);

// What the machine has; NVML is started only where there are MIG instances, unless asked for.
Result<model::Inventory> machine_of(const sys::Host& host,
                                    probe::UseNvml nvml = probe::UseNvml::ForMig);

// The same with what these limits need to be known.
Result<model::Inventory> machine_for(const ShareFlags& flags, const sys::Host& host);

// The first that has no instances.
Result<model::GpuUuid> any_gpu(const model::Inventory& machine);

// What becomes the keeper where none runs.
std::vector<std::string> keeper_program();
// A keeper that runs, or a new one for shares that a killed keeper left; NotFound says that there
// are no shares here.
Result<keeper::Client> running_keeper(const sys::Host& host);

// The fence's libraries beside this program: in ../lib/gantry of an installation, in ../lib of a
// build. Or where GANTRY_FENCE_LIBRARIES says.
struct FenceLibraries {
  std::string cuda;
  std::string nvml;
};
Result<FenceLibraries> find_fence();

// What the keeper keeps, and what hardware or another daemon holds.
Result<std::vector<keeper::ShareState>> shares_of(const sys::Host& host);
// NotFound, with what helps.
Result<keeper::ShareState> share_named(const sys::Host& host, const std::string& name);

// "10GiB" of bytes; "none" for no limit.
std::string limit_word(std::uint64_t bytes);

}  // namespace gantry::cli
