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
#include "sharing/policy/paths.hpp"
#include "sharing/policy/share.hpp"

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::daemon {

using policy::kControlSocket;
using policy::kSharesDirectory;
inline constexpr std::string_view kLockFile = "/run/gantry/keeper.lock";
inline constexpr std::string_view kLogPath =
    "/run/gantry/keeper.log";  // of a daemon that a client started
inline constexpr std::string_view kUntilIdle = "--until-idle";

// A daemon that works answers within milliseconds. Its watchdog replaces one that hangs sooner than
// this.
inline constexpr std::chrono::milliseconds kAnswerWithin{5'000};

class Client {
 public:
  // NotFound if the daemon is not running. Timeout if it does not accept within `patience`; by
  // default this never waits.
  static Result<Client> connect(const sys::Host& host,
                                std::chrono::milliseconds patience = std::chrono::milliseconds(0));
  // Also NotFound if the daemon is shutting down: it then accepts connections but does not answer.
  // Timeout if it hangs; the error names the process and the command that helps.
  static Result<Client> connect_to_ready(const sys::Host& host,
                                         std::chrono::milliseconds patience = kAnswerWithin);
  // Starts the daemon if it is not running: `program` (argv) with --root and --until-idle, detached
  // from terminal and session. If two clients do this at once, only one daemon remains. Fails as
  // connect_to_ready() if the daemon hangs.
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
  Result<ShareState> set(std::string_view name, const policy::ShareChanges& changes,
                         policy::Overcommit overcommit = policy::Overcommit::Refused);
  Result<ShareState> show(std::string_view name);
  // Memory, time and processes are current values; call again to update them.
  Result<std::vector<ShareState>> list();

  // The daemon closes the device nodes of all GPUs until this connection ends. Its NVML process may
  // need a moment to end. Invalid from a daemon of an earlier version.
  Status release_driver();

  pid_t daemon_pid() const;  // 0 if it is unknown
  // Becomes readable when the daemon ends, because the daemon sends nothing unasked.
  int fd() const { return socket_.get(); }
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }

 private:
  explicit Client(sys::UniqueFd socket) : socket_(std::move(socket)) {}
  using Deadline = std::chrono::steady_clock::time_point;
  // The line of the answer.
  Result<std::string> ask(std::string_view question, std::chrono::milliseconds timeout);
  Result<std::string> ask(std::string_view question) { return ask(question, timeout_); }
  Result<ShareState> request_state(std::string_view question, std::chrono::milliseconds timeout);
  Status send(std::string_view line, Deadline until);
  Result<std::string> read_line(Deadline until);
  Status wait_for(short events, Deadline until) const;
  Error hung() const;

  sys::UniqueFd socket_;
  std::string received_;
  std::chrono::milliseconds timeout_ = kAnswerWithin;
};

}  // namespace gantry::daemon
