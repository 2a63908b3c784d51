// SPDX-License-Identifier: Apache-2.0
// NVIDIA's MPS control daemon, by its own program: started, told its limits, asked whether it
// lives, ended. One daemon for each resource, with directories as NVIDIA's container has them:
// ROOT/RESOURCE/pipe, ROOT/RESOURCE/log, ROOT/shm for all, ROOT/RESOURCE/.started, ROOT/.ready.
// Everything here may take seconds: not for an event loop.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "sharing/mps/daemon_plan.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::mps {

inline constexpr std::string_view kControlProgram = "nvidia-cuda-mps-control";

// How the machine's programs are run: below a root as if it were theirs, or, on a simulated
// machine, from where they lie.
enum class RunMode : std::uint8_t { Chroot, Direct };

class ControlDaemon {
 public:
  // The host must outlive it. NotFound, with what helps, where the machine has no such program.
  static Result<ControlDaemon> find(const sys::Host& host, std::string mps_root, RunMode enter);

  // A daemon that answers already is told its limits and kept: it may have clients.
  Status start(const DaemonPlan& plan) const;
  Status check(const std::string& resource) const;  // whether it answers
  Status stop(const DaemonPlan& plan) const;
  // What a start that failed, or a daemon that is gone, has left: as if it had never been.
  void clear(const DaemonPlan& plan) const;
  // The program is there and does nothing: simulated machines have such files in its place.
  bool is_stub() const;
  // Whether every daemon is there; probes of NVIDIA's manifests look at it.
  Status set_ready(bool ready) const;

 private:
  ControlDaemon(const sys::Host& host, std::string mps_root, std::string directory, RunMode enter)
      : host_(&host),
        mps_root_(std::move(mps_root)),
        directory_(std::move(directory)),
        run_mode_(enter) {}

  std::string daemon_path(const std::string& path) const;  // as the daemon sees it
  std::string resource_path(const std::string& resource, std::string_view name) const;
  Status make_directories(const std::string& resource) const;
  Status set_limits(const DaemonPlan& plan) const;
  Status set_compute_mode(const DaemonPlan& plan, std::string_view mode) const;
  Result<std::string> send_command(const std::string& resource, const std::string& command) const;
  Result<std::string> run(const std::vector<std::string>& argv, const std::string& resource,
                          const std::string& input) const;

  const sys::Host* host_;
  std::string mps_root_;
  std::string directory_;  // of the programs
  RunMode run_mode_;
};

}  // namespace gantry::mps
