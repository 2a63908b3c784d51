// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/idle.hpp"

#include "base/core/text.hpp"
#include "install/driver_setup/device_nodes.hpp"
#include "install/kernel_module/module_order.hpp"
#include "install/preflight/driver_services.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace gantry::driver_setup {
namespace {

constexpr std::chrono::milliseconds kLookAgain{1000};
constexpr std::string_view kPersistencePid = "/run/nvidia-persistenced/nvidia-persistenced.pid";

std::string name_processes(const std::vector<vfio::Holder>& holders) {
  std::vector<std::string> texts;
  for (const auto& holder : holders) texts.push_back(vfio::describe(holder));
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string what_helps(const std::vector<vfio::Holder>& holders, const DrainRequest& request) {
  std::vector<std::string> pods;
  for (const auto& holder : holders) {
    if (!holder.pod.empty() && std::find(pods.begin(), pods.end(), holder.pod) == pods.end())
      pods.push_back(holder.pod);
  }
  std::string text;
  if (!pods.empty())
    text = fmt::format("delete or evict the pod{} {}", pods.size() == 1 ? "" : "s",
                       fmt::join(pods, ", "));
  const bool all_in_pods = std::all_of(holders.begin(), holders.end(),
                                       [](const auto& holder) { return !holder.pod.empty(); });
  if (!all_in_pods) {
    text += text.empty() ? "" : ", and ";
    text += request.terminate ? "end these processes"
                              : "end these processes, or use --drain "
                                "--terminate, which sends them SIGTERM";
  }
  if (!request.drain) text += "; --drain waits until they have ended";
  return text;
}

Status terminate_once(const std::vector<vfio::Holder>& holders, std::set<std::uint32_t>& told,
                      InstallEffects& effects) {
  for (const auto& holder : holders) {
    if (!holder.pod.empty() || !told.insert(holder.pid).second) continue;
    GANTRY_CHECK(effects.terminate(holder.pid));
  }
  return {};
}

vfio::HolderSearch search_blocking_processes(const sys::Host& host) {
  auto search = vfio::search_holders(host, nodes_that_hold_driver(host));
  auto& holders = search.holders;
  std::erase_if(holders, preflight::is_service_process);
  const auto same = [](const auto& a, const auto& b) { return a.pid == b.pid; };
  holders.erase(std::unique(holders.begin(), holders.end(), same), holders.end());
  return search;
}

bool are_modules_held(const sys::Host& host) {
  using Reason = kernel_module::UnloadBlocker::Reason;
  const auto loaded = kernel_module::read_loaded_modules(host);
  if (!loaded.ok()) return true;
  const auto blockers = kernel_module::unload_order(*loaded).blockers;
  return std::any_of(blockers.begin(), blockers.end(),
                     [](const auto& blocker) { return blocker.reason == Reason::References; });
}

Status check_users_known(const sys::Host& host, const vfio::HolderSearch& search) {
  if (search.unreadable.empty() || !are_modules_held(host)) return {};
  return Error(Errc::Busy,
               fmt::format("{}, so it cannot be known whether a process uses the loaded driver",
                           vfio::describe_unreadable(search.unreadable)))
      .advise(fmt::format("{}; or go on all the same with --ignore gpu-users-unknown",
                          vfio::kReadAllProcesses));
}

}  // namespace

std::vector<vfio::Holder> find_blocking_processes(const sys::Host& host) {
  return search_blocking_processes(host).holders;
}

Status await_idle(const sys::Host& host, const DrainRequest& request, InstallEffects& effects,
                  const std::function<void(std::string_view)>& progress) {
  auto left = std::chrono::milliseconds(std::chrono::seconds(request.drain ? request.seconds : 0));
  std::set<std::uint32_t> terminated;
  std::string shown;
  for (;;) {
    const auto search = search_blocking_processes(host);
    const auto& holders = search.holders;
    if (holders.empty())
      return request.accepts_unknown ? Status() : check_users_known(host, search);
    const auto names = name_processes(holders);
    if (left <= std::chrono::milliseconds(0)) {
      return Error(Errc::Busy, fmt::format("the loaded driver is in use: {}", names))
          .advise(what_helps(holders, request));
    }
    if (progress && names != shown) progress(fmt::format("waiting: {}", names));
    shown = names;
    if (request.stop != nullptr) GANTRY_CHECK(request.stop->check());
    if (request.terminate) GANTRY_CHECK(terminate_once(holders, terminated, effects));
    effects.pause(std::min(kLookAgain, left));
    left -= kLookAgain;
  }
}

bool accepts_unknown_users(const std::vector<std::string>& ignore) {
  return std::find(ignore.begin(), ignore.end(), "gpu-users-unknown") != ignore.end();
}

std::uint32_t persistence_daemon(const sys::Host& host) {
  const auto pid = parse_u64(host.read_value(kPersistencePid).value_or(""));
  if (!pid || *pid == 0 || *pid > UINT32_MAX) return 0;
  const auto name = host.read_value(fmt::format("/proc/{}/comm", *pid)).value_or("");
  return name.starts_with("nvidia-persiste") ? static_cast<std::uint32_t>(*pid) : 0;
}

bool ends_with_our_pod(const sys::Host& host) {
  const auto here = sys::Host::at("/");
  if (!here.ok()) return false;
  const auto ours = here->link("/proc/self/ns/pid");
  const auto theirs = host.link("/proc/1/ns/pid");
  return ours.ok() && theirs.ok() && *ours != *theirs;
}

bool has_running_systemd(const sys::Host& host) {
  return host.exists("/run/systemd/system");
}

}  // namespace gantry::driver_setup
