// SPDX-License-Identifier: Apache-2.0
#include "gantry/doctor_shares.hpp"

#include "base/core/text.hpp"
#include "base/core/unix_time.hpp"
#include "gantry/share_commands.hpp"
#include "gpu/abi/fence.h"
#include "sharing/backend/fence_libraries.hpp"
#include "sharing/daemon/heartbeat.hpp"
#include "sharing/daemon/share_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace gantry::cli {
namespace {

constexpr std::chrono::seconds kDaemonTimeout{3};
constexpr std::size_t kLibraryBytes = std::size_t{16} << 20;

std::int64_t seconds_since(std::int64_t then_ms) {
  return std::max<std::int64_t>(0, (unix_ms() - then_ms) / 1000);
}

// The library's bytes contain the version of its protocol.
doctor::SharesView::Library look_at(const std::string& path) {
  doctor::SharesView::Library library{.path = path, .there = true, .trouble = ""};
  const auto host = sys::Host::at("/");
  const auto bytes =
      host.ok() ? host->read(path, kLibraryBytes) : Result<std::string>(host.error());
  if (!bytes.ok()) {
    library.trouble = bytes.error().text();
    return library;
  }
  const std::string speaks(FENCE_SPEAKS);
  const auto at = bytes->find(speaks);
  const char wanted = static_cast<char>('0' + FENCE_VERSION);
  if (at == std::string::npos || at + speaks.size() >= bytes->size()) {
    library.trouble = "is not a fence library, or is too old";
  } else if ((*bytes)[at + speaks.size()] != wanted) {
    library.trouble =
        fmt::format("uses version {} of the fence's protocol, this program version {}",
                    (*bytes)[at + speaks.size()], wanted);
  }
  return library;
}

std::vector<doctor::SharesView::Library> libraries() {
  const auto fence = backend::find_fence();
  if (fence.ok()) return {look_at(fence->cuda), look_at(fence->nvml)};
  return {{.path = "libgantry-fence.so", .there = false, .trouble = fence.error().text()}};
}

// All shares of a GPU have the same neighbours.
void note_beside(const daemon::GpuState& gpu, doctor::SharesView& view) {
  const bool known = std::any_of(view.beside.begin(), view.beside.end(),
                                 [&](const auto& one) { return one.gpu == gpu.uuid.text; });
  if (known) return;
  for (const auto& stranger : gpu.unmanaged)
    view.beside.push_back({.gpu = gpu.uuid.text,
                           .pid = stranger.pid,
                           .command = stranger.command,
                           .memory = human_bytes(stranger.memory_used)});
}

void ask_daemon(const sys::Host& host, doctor::SharesView& view) {
  auto client = daemon::Client::connect_to_ready(host, kDaemonTimeout);
  if (!client.ok()) {
    view.only_root = client.error().code() == Errc::Denied;
    const auto heartbeat = daemon::read_heartbeat(host);
    if (client.error().code() == Errc::Timeout && heartbeat)
      view.hung_pid = static_cast<std::uint64_t>(heartbeat->process.pid);
    view.no_answer_reason = client.error().cause();
    return;
  }
  client->set_timeout(kDaemonTimeout);
  const auto states = client->list();
  if (!states.ok()) {
    view.no_answer_reason = states.error().text();
    return;
  }
  view.names.clear();  // the daemon's error is more precise
  for (const auto& state : *states) {
    view.names.push_back(state.share.name);
    for (const auto& gpu : state.gpus) note_beside(gpu, view);
    for (const auto& finding : state.findings)
      view.findings.push_back({.share = state.share.name,
                               .text = finding.text,
                               .seconds_ago = seconds_since(finding.at_unix_ms),
                               .stopped = finding.stopped});
  }
}

}  // namespace

std::optional<doctor::SharesView> query_share_daemon(
    const sys::Host& host, const std::vector<const doctor::Check*>& checks) {
  const bool wanted = std::any_of(checks.begin(), checks.end(), [](const doctor::Check* check) {
    return check->id.starts_with("shares.");
  });
  if (!wanted) return std::nullopt;
  doctor::SharesView view;
  view.libraries = libraries();
  const auto found = daemon::read_records(host);
  for (const auto& record : found.records) view.names.push_back(record.share.name);
  for (const auto& problem : found.problems) {
    view.only_root = view.only_root || problem.code() == Errc::Denied;
    view.unreadable.push_back(problem.text());
  }
  if (!view.names.empty() || !view.unreadable.empty()) ask_daemon(host, view);
  return view;
}

}  // namespace gantry::cli
