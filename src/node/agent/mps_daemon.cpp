// SPDX-License-Identifier: Apache-2.0
#include "node/agent/mps_daemon.hpp"

#include "base/core/text.hpp"
#include "container/driver_dir/current.hpp"
#include "gpu/probe/snapshot.hpp"
#include "node/agent/signal_wait.hpp"
#include "node/resources/resources.hpp"
#include "sharing/mps/control_daemon.hpp"

#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kMpsDaemonComponent = "mps";
constexpr auto kAgain = 5s;

class Daemons {
 public:
  Daemons(MpsDaemonOptions with, SignalWait signals) : with_(std::move(with)), signals_(signals) {}

  Status run() {
    while (true) {
      if (with_.options.mps_root.empty()) with_.options.mps_root = kMpsMountPath;
      const auto woken = one_configuration();
      stop();
      if (woken == WakeReason::End) return {};
      with_.log.info(kMpsDaemonComponent, "reading the configuration again");
      GANTRY_TRY(with_.options, with_.reload());
    }
  }

 private:
  WakeReason one_configuration() {
    while (true) {
      const auto started = start();
      if (!started.ok())
        with_.log.error(kMpsDaemonComponent, "cannot start the MPS daemons",
                        {{"err", started.error()}});
      const auto woken =
          signals_.wait(started.ok() && running_.empty() ? options::kInfinite : kAgain);
      if (woken != WakeReason::Time) return woken;
    }
  }

  // Also supervises daemons that already run.
  Status start() {
    if (running_.empty()) {
      GANTRY_TRY(machine_, probe::snapshot(with_.host));
    }
    GANTRY_TRY(const auto offer, resources::resources(machine_, with_.options));
    GANTRY_TRY(auto plans, mps::plan_daemons(machine_, offer.resources));
    if (plans.empty()) {
      if (!std::exchange(idle_, true))
        with_.log.info(kMpsDaemonComponent,
                       "no GPU is shared with MPS, waiting for another configuration");
      return {};
    }
    idle_ = false;
    const bool simulated = !driver_dir::simulated_engine_root(with_.host).empty();
    GANTRY_TRY(auto control,
               mps::ControlDaemon::find(with_.host, with_.options.mps_root,
                                        simulated ? mps::RunMode::Direct : mps::RunMode::Chroot));
    control_.emplace(std::move(control));
    const bool first = running_.empty();
    for (const auto& plan : plans) {
      if (!first && control_->check(plan.resource).ok()) continue;
      GANTRY_CHECK(control_->start(plan));
      with_.log.info(kMpsDaemonComponent, "MPS daemon answers", {{"resource", plan.resource}});
    }
    running_ = std::move(plans);
    return control_->set_ready(true);
  }

  void stop() {
    if (!control_) return;
    for (const auto& plan : running_) {
      const auto stopped = control_->stop(plan);
      if (!stopped.ok())
        with_.log.warning(kMpsDaemonComponent, "cannot stop the MPS daemon",
                          {{"resource", plan.resource}, {"err", stopped.error()}});
    }
    running_.clear();
    const auto hidden = control_->set_ready(false);
    if (!hidden.ok())
      with_.log.warning(kMpsDaemonComponent, "cannot mark MPS as not ready",
                        {{"err", hidden.error()}});
  }

  MpsDaemonOptions with_;
  SignalWait signals_;
  model::Inventory machine_;
  std::optional<mps::ControlDaemon> control_;
  std::vector<mps::DaemonPlan> running_;
  bool idle_ = false;
};

// "MemTotal:       16292340 kB"
std::uint64_t half_the_memory_kib(const sys::Host& host) {
  constexpr std::uint64_t kOtherwise = 65536;
  const auto text = host.read("/proc/meminfo");
  if (!text.ok()) return kOtherwise;
  for (const auto line : split(*text, '\n')) {
    if (!line.starts_with("MemTotal:")) continue;
    const auto value = trim(line.substr(line.find(':') + 1));
    return parse_u64(value.substr(0, value.find(' '))).value_or(2 * kOtherwise) / 2;
  }
  return kOtherwise;
}

}  // namespace

Status run_mps_daemons(MpsDaemonOptions daemons) {
  GANTRY_TRY(const auto signals, SignalWait::make());
  return Daemons(std::move(daemons), signals).run();
}

Status mount_shm(const sys::Host& host, const std::string& mps_root) {
  const auto path = host.outside(mps_root + "/shm");
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Error::sys(error.value(), "mkdir").in(path);
  struct statfs kind {};
  if (::statfs(path.c_str(), &kind) == 0 && kind.f_type == TMPFS_MAGIC) return {};
  const auto options = fmt::format("size={}k,mode=1777", half_the_memory_kib(host));
  if (::mount("shm", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RELATIME,
              options.c_str()) != 0)
    return Error::sys(errno, "mount").in(path);
  return {};
}

}  // namespace gantry::agent
