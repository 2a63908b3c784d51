// SPDX-License-Identifier: Apache-2.0
#include "node/agent/share_daemon_supervisor.hpp"

#include "base/core/clock.hpp"
#include "sharing/daemon/heartbeat.hpp"
#include "sharing/daemon/shared_pages.hpp"
#include "sharing/daemon/start_detached.hpp"

#include <signal.h>
#include <sys/epoll.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;
constexpr std::string_view kShareDaemonSupervisorComponent = "shares";
constexpr std::chrono::milliseconds kFirstBackOff = 500ms;

}  // namespace

ShareDaemonSupervisor::ShareDaemonSupervisor(sys::Loop& loop, const sys::Host& host, Log log,
                                             Options options)
    : loop_(loop), host_(host), log_(std::move(log)), options_(std::move(options)) {
  look();
}

// An idle node has no shares, and a daemon that exits closes its connection: both can wait.
void ShareDaemonSupervisor::look_again_in(std::chrono::milliseconds pause) {
  if (std::exchange(pause_, pause) == pause) return;
  timer_ = loop_.every(pause, [this] { look(); });
}

bool ShareDaemonSupervisor::has_shares() const {
  const auto names = host_.list(daemon::kSharesDirectory);
  return names.ok() && std::any_of(names->begin(), names->end(), [&](const std::string& name) {
           return host_.exists(fmt::format("{}/{}/share.json", daemon::kSharesDirectory, name));
         });
}

void ShareDaemonSupervisor::look() {
  if (!has_shares()) {
    gone_.cancel();
    client_.reset();  // a share daemon without shares may exit
    return look_again_in(options_.rest_every);
  }
  if (client_) {
    kill_if_hung();
  } else {
    connect_or_start();
  }
  look_again_in(client_ ? options_.rest_every : options_.look_every);
}

void ShareDaemonSupervisor::connect_or_start() {
  auto client = daemon::Client::connect(host_);
  if (client.ok()) {
    auto watch =
        loop_.watch(client->fd(), EPOLLIN | EPOLLRDHUP, [this](std::uint32_t) { on_gone(); });
    if (!watch.ok()) return;
    client_.emplace(*std::move(client));
    gone_ = *std::move(watch);
    back_off_ = 0ms;
    return;
  }
  const auto now = Clock::now();
  if (client.error().code() != Errc::NotFound || now < not_before_) return;
  back_off_ = std::clamp(2 * back_off_, kFirstBackOff, options_.longest_back_off);
  not_before_ = now + back_off_;
  auto argv = options_.program;
  argv.insert(argv.end(), {"--root", host_.root(), std::string(daemon::kUntilIdle)});
  log_.info(kShareDaemonSupervisorComponent,
            "there are shares but no share daemon runs, starting one");
  const auto started = daemon::start_detached(argv, host_.outside(daemon::kLogPath));
  if (!started.ok())
    log_.error(kShareDaemonSupervisorComponent, "cannot start the share daemon",
               {{"err", started.error()}});
}

// The daemon's own watchdog does this sooner; but it may be gone, too.
void ShareDaemonSupervisor::kill_if_hung() {
  const auto heartbeat = daemon::read_heartbeat(host_);
  if (!heartbeat || !daemon::is_running(heartbeat->process)) return;
  const auto silent = std::chrono::nanoseconds(daemon::monotonic_ns()) - heartbeat->at;
  if (silent < options_.hung_after) return;
  log_.error(
      kShareDaemonSupervisorComponent, "the share daemon hangs, killing it",
      {{"pid", heartbeat->process.pid}, {"state", daemon::describe_hang(heartbeat->process.pid)}});
  ::kill(heartbeat->process.pid, SIGKILL);
}

void ShareDaemonSupervisor::on_gone() {
  gone_.cancel();
  client_.reset();
  look();
}

}  // namespace gantry::agent
