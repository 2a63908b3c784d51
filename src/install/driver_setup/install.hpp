// SPDX-License-Identifier: Apache-2.0
// Installs a driver, loads it, and builds its modules for other kernels. One at a time on a
// machine. Every change is in the journal before it is made: a step that fails is taken back with
// all before it, and after a crash the same call again ends installed.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/termination.hpp"
#include "install/driver_setup/install_effects.hpp"
#include "install/driver_setup/install_plan.hpp"
#include "install/driver_setup/verify.hpp"
#include "install/preflight/facts.hpp"
#include "install/preflight/judge.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_setup {

// What an installation is about, in this order, for a log that does not show each step. A phase
// that is not needed is left out.
enum class SetupPhase : std::uint8_t {
  Download,
  Install,  // all steps before the verification
  Verify    // and what follows it
};

struct SetupOptions {
  // The facts of the machine, read when they are needed: not if nothing has to be done.
  std::function<Result<preflight::MachineFacts>()> read_facts;
  // Runs the steps that need the GPUs for themselves, such as under a lease of the agent.
  std::function<Status(const std::function<Status()>& act)> exclusively = {};
  // Told each step when it begins, as describe() says it, and what it waits for.
  std::function<void(std::string_view text)> progress = {};
  // Told when a phase begins, perhaps more than once.
  std::function<void(SetupPhase phase)> enter = {};
  // Path of gantry for the unit and the hooks; "" leaves both out, as in a pod.
  std::string program;
  unsigned jobs = 1;  // of make
  // Asked between two steps and while something waits; nullptr: never. What was begun is taken back
  // then. A step that changes the kernel is finished first.
  const sys::Termination* stop = nullptr;

  // "stopped by SIGTERM", Timeout, if that was asked for.
  Status check_stop() const { return stop == nullptr ? Status() : stop->check(); }
};

struct SetupReport {
  InstallRecord record;  // what is installed now
  bool changed = false;
  std::vector<std::string> done;   // steps, one sentence each
  std::vector<std::string> notes;  // what failed without harm or should be known
  VerifyReport verified;           // empty if nothing was changed
};

// The preflight's verdict and the plan. Changes nothing.
struct SetupPreview {
  std::vector<preflight::Finding> findings;
  InstallPlan plan;
  bool up_to_date = false;  // nothing would be done
};
Result<SetupPreview> preview_install(const sys::Host& host, const preflight::DriverRequest& request,
                                     const SetupOptions& options);

// If the same driver is installed, complete and loaded for this kernel, nothing is touched; if it
// is only not loaded, it is loaded. Otherwise the preflight must find no blocker.
//
// Busy if a process uses the loaded driver, with its name, or if another installation is under way.
// Internal if a step failed and its way back too: the journal stays. With any other code, as after
// options.stop (Timeout), the machine is as it was, apart from what was downloaded.
Result<SetupReport> install(const sys::Host& host, const preflight::DriverRequest& request,
                            const SetupOptions& options, InstallEffects& effects);

// Loads the driver that is installed, as after a boot. NotFound if nothing is installed or if it
// has no modules for this kernel; the sentence says what is missing.
Result<SetupReport> load(const sys::Host& host, const SetupOptions& options,
                         InstallEffects& effects);

// Builds the modules of the installed driver for a kernel, which need not run. Nothing is loaded.
Result<SetupReport> build(const sys::Host& host, const std::string& kernel,
                          const SetupOptions& options, InstallEffects& effects);
// Removes what was built for a kernel that has been removed.
Status forget_kernel(const sys::Host& host, const std::string& kernel, InstallEffects& effects);

}  // namespace gantry::driver_setup
