// SPDX-License-Identifier: Apache-2.0
#include "node/agent/share_daemon_supervisor.hpp"

#include "sharing/daemon/start_detached.hpp"

#include <sys/epoll.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kShareDaemonSupervisorComponent = "shares";
constexpr std::chrono::milliseconds kFirstBackOff = 500ms;

}  // namespace

ShareDaemonSupervisor::ShareDaemonSupervisor(sys::Loop& loop, const sys::Host& host, Log log,
                                             Options options)
    : loop_(loop), host_(host), log_(std::move(log)), options_(std::move(options)) {
  timer_ = loop_.every(options_.look_every, [this] { look(); });
  look();
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
    return;
  }
  if (client_) return;
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
            "there are shares but no share daemon runs: starting one");
  const auto started = daemon::start_detached(argv, host_.outside(daemon::kLogPath));
  if (!started.ok()) log_.error(kShareDaemonSupervisorComponent, started.error().text());
}

void ShareDaemonSupervisor::on_gone() {
  gone_.cancel();
  client_.reset();
  look();
}

Result<daemon::ShareState> share_for_container(const sys::Host& host,
                                               const std::vector<std::string>& program,
                                               const std::string& name, policy::ShareText limits) {
  limits.name = name;
  GANTRY_TRY(const auto share, policy::parse_share(limits));
  GANTRY_TRY(auto client, daemon::Client::connect_or_start(host, program));
  auto known = client.show(name);
  if (known.ok() || known.error().code() != Errc::NotFound) return known;
  return client.create(share);
}

}  // namespace gantry::agent
