// SPDX-License-Identifier: Apache-2.0
#include "sharing/backend/shares.hpp"

#include "sharing/backend/share_device.hpp"
#include "sharing/daemon/share_record.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace gantry::backend {

namespace fs = std::filesystem;

namespace {

// This program; after an upgrade, the new one in its place.
std::string own_program() {
  constexpr std::string_view kReplaced = " (deleted)";
  std::error_code failed;
  auto self = fs::read_symlink("/proc/self/exe", failed).string();
  if (failed) return "gantry";
  if (self.ends_with(kReplaced)) self.resize(self.size() - kReplaced.size());
  return self;
}

}  // namespace

std::vector<std::string> daemon_command() {
  return {own_program(), "share", "serve"};
}

std::vector<std::string> watchdog_command(const sys::Host& host) {
  return {own_program(), "share", "watch", "--root", host.root()};
}

Result<daemon::Client> connect_to_daemon(const sys::Host& host) {
  auto client = daemon::Client::connect_to_ready(host);
  if (client.ok() || client.error().code() != Errc::NotFound) return client;
  if (!daemon::read_records(host).records.empty())
    return daemon::Client::connect_or_start(host, daemon_command());
  return Error(Errc::NotFound,
               "there are no shares: the share daemon is not running; `gantry share run` and "
               "`gantry share create` start it");
}

Result<std::vector<daemon::ShareState>> list_all_shares(const sys::Host& host) {
  std::vector<daemon::ShareState> shares;
  auto client = connect_to_daemon(host);
  if (client.ok()) {
    GANTRY_TRY(shares, client->list());
  } else if (client.error().code() != Errc::NotFound) {
    return std::move(client).error();
  }
  for (auto& share : declared_shares(host)) {
    daemon::ShareState state;
    for (const auto& gpu : share.gpus)
      state.gpus.push_back({.uuid = gpu,
                            .memory_limit = share.memory ? share.memory->bytes : UINT64_MAX,
                            .gate = "-"});
    state.share = std::move(share);
    shares.push_back(std::move(state));
  }
  return shares;
}

Result<daemon::ShareState> find_share(const sys::Host& host, const std::string& name) {
  GANTRY_TRY(auto shares, list_all_shares(host));
  for (auto& state : shares) {
    if (state.share.name == name) return std::move(state);
  }
  return Error(Errc::NotFound,
               fmt::format("there is no share {}; `gantry share ls` lists the shares", name));
}

}  // namespace gantry::backend
