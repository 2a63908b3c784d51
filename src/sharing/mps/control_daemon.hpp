// SPDX-License-Identifier: Apache-2.0
// Starts, configures, checks and stops NVIDIA's MPS control daemon with NVIDIA's own program. There
// is one daemon per resource, with the directories of NVIDIA's container: ROOT/RESOURCE/pipe,
// ROOT/RESOURCE/log, ROOT/shm for all, ROOT/RESOURCE/.started, ROOT/.ready. Every call may take
// seconds, so do not call it from an event loop.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "sharing/mps/daemon_plan.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::mps {

inline constexpr std::string_view kControlProgram = "nvidia-cuda-mps-control";

// How to run the machine's programs: with its directory as their root, or, on a simulated machine,
// directly.
enum class RunMode : std::uint8_t { Chroot, Direct };

class ControlDaemon {
 public:
  // The host must outlive this object. NotFound, with a remedy, if the machine has no such program.
  static Result<ControlDaemon> find(const sys::Host& host, std::string mps_root, RunMode enter);

  // A daemon that already answers is kept and gets its limits, because it may have clients.
  Status start(const DaemonPlan& plan) const;
  Status check(const std::string& resource) const;  // ok if it answers
  Status stop(const DaemonPlan& plan) const;
  // Cleans up after a failed start or a daemon that is gone.
  void clear(const DaemonPlan& plan) const;
  // Records whether every daemon runs; the probes of NVIDIA's manifests check this.
  Status set_ready(bool ready) const;

 private:
  ControlDaemon(const sys::Host& host, std::string mps_root, std::string directory, RunMode enter)
      : host_(&host),
        mps_root_(std::move(mps_root)),
        directory_(std::move(directory)),
        run_mode_(enter),
        library_path_(library_path()) {}

  // The driver's directories as the programs need them in LD_LIBRARY_PATH: the loader's cache may
  // lack them, and another machine's cache is in use for the programs of a simulated one.
  std::string library_path() const;

  std::string daemon_path(const std::string& path) const;  // in the daemon's view
  std::string resource_path(const std::string& resource, std::string_view name) const;
  Status make_directories(const std::string& resource) const;
  Status start_daemon(const DaemonPlan& plan) const;
  Status set_limits(const DaemonPlan& plan) const;
  Status set_compute_mode(const DaemonPlan& plan, std::string_view mode) const;
  Result<std::string> send_command(const std::string& resource, const std::string& command) const;
  // `environment`: in addition to what every program gets.
  Result<std::string> run(const std::vector<std::string>& argv, const std::string& resource,
                          const std::string& input,
                          const std::vector<std::string>& environment = {}) const;

  const sys::Host* host_;
  std::string mps_root_;
  std::string directory_;  // of the programs on the machine
  RunMode run_mode_;
  std::string library_path_;
};

}  // namespace gantry::mps
