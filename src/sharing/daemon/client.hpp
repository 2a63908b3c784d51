// SPDX-License-Identifier: Apache-2.0
// A connection to a machine's share daemon (`gantry share serve`).
//
//   GANTRY_TRY(auto client, Client::connect_or_start(host, {"/proc/self/exe", "share", "serve"}));
//   GANTRY_TRY(const auto made, client.hold(share));   // lives as long as `client`
//   ... mount made.directory at /run/gantry/fence, run the command, and register it:
//   GANTRY_CHECK(client.adopt(made.share.name, pid));
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"
#include "sharing/daemon/share_state.hpp"
#include "sharing/policy/share.hpp"

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::daemon {

inline constexpr std::string_view kControlSocket = "/run/gantry/keeper.sock";
inline constexpr std::string_view kLockFile = "/run/gantry/keeper.lock";
inline constexpr std::string_view kSharesDirectory =
    "/run/gantry/shares";  // NAME/share.json, NAME/fence/
inline constexpr std::string_view kLogPath =
    "/run/gantry/keeper.log";  // of a daemon that a client started
inline constexpr std::string_view kUntilIdle = "--until-idle";

class Client {
 public:
  // NotFound if the daemon is not running.
  static Result<Client> connect(const sys::Host& host);
  // Also NotFound if the daemon is shutting down: it then accepts connections but does not answer.
  static Result<Client> connect_to_ready(const sys::Host& host);
  // Starts the daemon if it does not answer: `program` (argv) with --root and --until-idle,
  // detached from terminal and session. If two clients do this at once, only one daemon remains.
  static Result<Client> connect_or_start(const sys::Host& host,
                                         const std::vector<std::string>& program);

  // Creates a share that stays until remove(), even if the daemon restarts. Exists if the name is
  // in use.
  Result<ShareState> create(const policy::Share& share,
                            policy::Overcommit overcommit = policy::Overcommit::Refused);
  // Creates a share that ends with this connection, for whatever reason the connection ends.
  Result<ShareState> hold(const policy::Share& share,
                          policy::Overcommit overcommit = policy::Overcommit::Refused);
  // Adds `pid` and all its descendants to the share, whether they attach or not. The auditor
  // watches them.
  Status adopt(std::string_view name, pid_t pid);

  // The following return NotFound if there is no such share.
  Status remove(std::string_view name);
  Result<ShareState> set(std::string_view name, const policy::ShareText& changes,
                         policy::Overcommit overcommit = policy::Overcommit::Refused);
  Result<ShareState> show(std::string_view name);
  // Memory, time and processes are current values; call again to update them.
  Result<std::vector<ShareState>> list();

  // Becomes readable when the daemon ends, because the daemon sends nothing unasked.
  int fd() const { return socket_.get(); }
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }

 private:
  explicit Client(sys::UniqueFd socket) : socket_(std::move(socket)) {}
  Result<std::string> ask(std::string_view question);  // the line of the answer
  Result<ShareState> request_state(std::string_view question);
  Status send(std::string_view line);
  Result<std::string> read_line();

  sys::UniqueFd socket_;
  std::string received_;
  std::chrono::milliseconds timeout_{60'000};  // the driver may need time to start
};

}  // namespace gantry::daemon
