// SPDX-License-Identifier: Apache-2.0
#include "node/owner_lease/quiet_share_daemon.hpp"

#include "base/core/clock.hpp"
#include "gpu/device_users/device_users.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace gantry::owner_lease {
namespace {

using namespace std::chrono_literals;

constexpr auto kProcessEnds = 5s;
constexpr auto kLookForProcess = 20ms;

Error keeps_gpu(const model::PciAddress& gpu, pid_t daemon, std::string_view why) {
  Error error(Errc::Busy, fmt::format("the share daemon keeps {} open: {}", gpu.sysfs(), why));
  if (daemon <= 0) return error;
  return std::move(error).advise(fmt::format(
      "run `sudo kill {}`: the shares stay, and the next `gantry share` command starts another "
      "daemon",
      daemon));
}

bool has_child_on(const sys::Host& host, const model::PciAddress& gpu, pid_t daemon) {
  const auto users = device_users::find_users(host, gpu);
  return users.ok() && std::any_of(users->begin(), users->end(), [&](const auto& user) {
           return user.parent == static_cast<std::uint32_t>(daemon);
         });
}

}  // namespace

Result<QuietShareDaemon> QuietShareDaemon::ask(const sys::Host& host,
                                               const model::PciAddress& gpu) {
  QuietShareDaemon quiet;
  auto client = daemon::Client::connect(host);
  if (!client.ok() && client.error().code() == Errc::NotFound) return quiet;
  if (!client.ok()) return keeps_gpu(gpu, 0, client.error().cause());
  const auto pid = client->daemon_pid();
  if (const auto released = client->release_driver(); !released.ok())
    return keeps_gpu(gpu, pid, released.error().cause());
  for (const auto until = Clock::now() + kProcessEnds; pid > 0 && has_child_on(host, gpu, pid);) {
    if (Clock::now() >= until) return keeps_gpu(gpu, pid, "its NVML process does not end");
    std::this_thread::sleep_for(kLookForProcess);
  }
  quiet.client_.emplace(*std::move(client));
  return quiet;
}

}  // namespace gantry::owner_lease
