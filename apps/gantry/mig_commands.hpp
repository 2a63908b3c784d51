// SPDX-License-Identifier: Apache-2.0
// Shared by the commands of `gantry mig` and by nvidia-mig-parted.
#pragma once

#include "gantry/command.hpp"
#include "gpu/mig/config_file.hpp"
#include "gpu/mig/layout.hpp"
#include "gpu/mig_change/change.hpp"
#include "gpu/mig_change/live_driver.hpp"
#include "gpu/mig_change/state.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gantry::cli {

struct MigFlags {
  std::vector<std::string> gpus;  // index, address or UUID; "all"; empty: all, or the only one
  std::string layout;             // words: "3g.71gb,2x1g.18gb", "off"
  std::string file;
  std::string set;
  bool mode_only = false;
  bool valid_only = false;  // assert: the file, not the machine
  bool reset = false;       // if a mode needs it
  bool former = false;      // restore: the layout before an interrupted change
  bool dry_run = false;
  double drain_seconds = 0;
  double deadline_seconds = 60;  // of one request to the driver
  std::string format = "yaml";   // export
};

// What one GPU should have.
struct MigTarget {
  mig::MigGpu gpu;
  mig::LayoutRequest request;
};

// What can be seen of the machine.
struct MigView {
  std::vector<mig::MigGpu> gpus;
  std::vector<mig_nvml::MigProcess> processes;
  mig_change::StoredStates stored;
  // By UUID of the compute instance: who uses it. nullopt: this user may not know.
  std::map<std::string, std::optional<std::vector<std::string>>> users;

  const mig_change::GpuState* state_of(const model::PciAddress& gpu) const;
};

mig_nvml::SessionOptions mig_session_options(const MigFlags& flags);
Result<MigView> view_mig(const sys::Host& host, mig_change::LiveDriver& driver);
// Also who uses the instances of these GPUs: it reads /proc for each of them.
void find_mig_users(const sys::Host& host, const std::vector<mig::MigGpu>& gpus, MigView& view);

// The GPUs that --gpu names. Without --gpu: the only GPU, or with `all_by_default` all that can
// have MIG.
Result<std::vector<mig::MigGpu>> chosen_mig_gpus(const std::vector<mig::MigGpu>& gpus,
                                                 const std::vector<std::string>& names,
                                                 bool all_by_default);
Result<mig::MigConfigFile> read_mig_config(const std::string& file);
Result<std::vector<MigTarget>> mig_targets(const mig::MigConfigFile& config, const std::string& set,
                                           const MigView& view);
// By the words or by the file.
Result<std::vector<MigTarget>> mig_targets(const MigFlags& flags, const MigView& view);

std::string mig_label(const mig::MigGpu& gpu);  // "GPU 0 (0000:3b:00.0)"

// The layout for a request on a GPU as it is now; what somebody uses is kept if it can be.
Result<mig_change::Layout> plan_mig(const mig::MigGpu& gpu, const mig::LayoutRequest& request,
                                    const std::vector<model::GpuUuid>& held);

// The slices before and after it, and what happens to each instance; "" if it does not fit.
std::string picture_of_change(const mig::MigGpu& gpu, const mig::LayoutRequest& request,
                              std::size_t columns);

// How the change of one GPU ended.
struct MigOutcome {
  mig::MigGpu gpu;  // before
  mig_change::ChangeReport report;
  std::vector<model::GpuUuid> kept;
  std::map<std::string, std::vector<std::string>> in_the_way;  // by UUID; of instances that go
  std::string picture;                                         // of a plan by layout; may be empty
  std::optional<Error> failed;
};

Result<std::vector<MigOutcome>> change_mig(const sys::Host& host, const MigFlags& flags,
                                           const std::vector<MigTarget>& targets,
                                           mig_change::LiveDriver& driver, const MigView& view,
                                           Context& context);
Result<std::vector<MigOutcome>> restore_mig(const sys::Host& host, const MigFlags& flags,
                                            mig_change::LiveDriver& driver, const MigView& view,
                                            Context& context);

// Whether the GPU is as the target says.
bool is_applied(const MigTarget& target, const MigView& view, bool mode_only);

std::string mig_instances_table(const std::vector<mig::MigGpu>& gpus, const MigView& view,
                                std::size_t columns);
std::string mig_profiles_table(const std::vector<mig::MigGpu>& gpus, std::size_t columns);
std::string mig_json(const std::vector<mig::MigGpu>& gpus, const MigView& view);
std::string mig_change_json(const std::vector<MigOutcome>& outcomes, bool dry_run);
int print_mig_changes(const std::vector<MigOutcome>& outcomes, const MigFlags& flags,
                      const Context& context);

Result<int> apply_mig(const MigFlags& flags, Context& context);
Result<int> assert_mig(const MigFlags& flags, Context& context);
Result<int> export_mig(const MigFlags& flags, Context& context);

}  // namespace gantry::cli
