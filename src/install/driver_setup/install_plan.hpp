// SPDX-License-Identifier: Apache-2.0
// What an installation will do, decided before the first change. Values in, values out.
#pragma once

#include "base/core/result.hpp"
#include "install/driver_package/distribution.hpp"
#include "install/driver_setup/install_record.hpp"
#include "install/preflight/facts.hpp"
#include "install/preflight/request.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_setup {

// In the order in which they are done.
enum class StepKind : std::uint8_t {
  Unpack,        // the archive, with the patch, into the staging directory
  PlaceFiles,    // as a version below DIR/.versions
  BuildModules,  // for one kernel; subject: its release
  CopyModules,   // that were built elsewhere; subject: the release
  RunPackages,   // the distribution's own commands
  CheckIdle,     // no process uses the driver that is loaded
  StopServices,
  UnloadModules,
  SwitchVersion,  // `current`; subject: the name of the version
  SetFirmwarePath,
  LoadModules,
  MakeNodes,
  PlaceLicence,
  StartServices,
  UpdateLoaderCache,
  WriteGoogleCache,  // for who reads what Google's installer leaves
  Verify,
  KeepAtBoot,  // the unit that loads the driver, the hooks that build it for new kernels
  Record,
  RefreshCdi,
  TellAgent,
  CleanUp
};
std::string_view to_string(StepKind kind);  // "build-modules"
std::optional<StepKind> parse_step_kind(std::string_view text);

struct InstallStep {
  StepKind kind = StepKind::Unpack;
  std::string subject{};
  bool operator==(const InstallStep&) const = default;
};
// For people: "build the open modules of 580.159.04 for 6.1.0-21-amd64".
std::string describe(const InstallStep& step, const InstallRecord& target);

// The archive that a request names, as far as it is known before it is downloaded.
struct PackageInfo {
  std::string version;
  std::string digest;  // sha256; "" if it is not known yet
  std::string url;
  FileStamp archive;  // a local file, or what was downloaded
  bool operator==(const PackageInfo&) const = default;
};

struct PlanInput {
  const preflight::MachineFacts& facts;
  const preflight::DriverRequest& request;
  PackageInfo package;
  std::string patch_digest;
  std::optional<InstallRecord> installed;
  std::optional<driver_package::PackagePlan> packages;
  bool keep_at_boot = true;
  // Work on the same target that did not end: modules may be unloaded already.
  bool resumes = false;
};

struct InstallPlan {
  InstallRecord target;  // what will be recorded
  std::vector<InstallStep> steps;
  std::vector<std::string> notes;
  std::string kernel;              // the release that modules are for
  std::string package_commands{};  // of the distribution, as a person can paste them
  bool operator==(const InstallPlan&) const = default;
};

// Does not judge the machine: preflight::judge has done that. Unsupported if no flavour of the
// module suits the GPUs.
Result<InstallPlan> make_plan(const PlanInput& input);

// The steps before this one change nothing that a process could notice.
bool needs_idle_gpus(StepKind kind);

// Whether the record is of the package that is asked for, with the same patch, flavour and
// directory.
bool is_same_driver(const InstallRecord& record, const preflight::DriverRequest& request,
                    const PackageInfo& package, std::string_view patch_digest);

}  // namespace gantry::driver_setup
