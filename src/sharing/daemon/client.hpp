// SPDX-License-Identifier: Apache-2.0
// Asks the keeper (`gantry share serve`) of a machine.
//
//   GANTRY_TRY(auto keeper, Client::connect_or_start(host, {"/proc/self/exe", "share", "serve"}));
//   GANTRY_TRY(const auto made, keeper.hold(share));   // lives as long as `keeper`
//   ... mount made.directory at /run/gantry/fence, run the command, and tell of it:
//   GANTRY_CHECK(keeper.adopt(made.share.name, pid));
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
    "/run/gantry/keeper.log";  // of one that a client started
inline constexpr std::string_view kUntilIdle = "--until-idle";

class Client {
 public:
  // NotFound: no keeper runs there.
  static Result<Client> connect(const sys::Host& host);
  // NotFound also for one that is just ending, which takes connections and says nothing.
  static Result<Client> connect_to_ready(const sys::Host& host);
  // Starts one where none answers: `program` (argv) with --root and --until-idle, detached from
  // terminal and session. Two that start at once end up with one keeper.
  static Result<Client> connect_or_start(const sys::Host& host,
                                         const std::vector<std::string>& program);

  // A share that stays until remove(), also over restarts of the keeper. Exists for a name that is
  // taken.
  Result<ShareState> create(const policy::Share& share,
                            policy::Overcommit overcommit = policy::Overcommit::Refused);
  // The same for a share that ends with this connection, however that ends.
  Result<ShareState> hold(const policy::Share& share,
                          policy::Overcommit overcommit = policy::Overcommit::Refused);
  // `pid` and all its descendants belong to the share, whether they attach or not: the auditor
  // looks at them.
  Status adopt(std::string_view name, pid_t pid);

  // NotFound for a share that is not there, in these.
  Status remove(std::string_view name);
  Result<ShareState> set(std::string_view name, const policy::ShareText& changes,
                         policy::Overcommit overcommit = policy::Overcommit::Refused);
  Result<ShareState> show(std::string_view name);
  // What changes (memory, time, processes) is as of now: ask again for the next picture.
  Result<std::vector<ShareState>> list();

  // Readable when the keeper has ended: it says nothing unasked.
  int fd() const { return socket_.get(); }
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }

 private:
  explicit Client(sys::UniqueFd socket) : socket_(std::move(socket)) {}
  Result<std::string> ask(std::string_view question);  // the answer's line
  Result<ShareState> request_state(std::string_view question);
  Status send(std::string_view line);
  Result<std::string> read_line();

  sys::UniqueFd socket_;
  std::string received_;
  std::chrono::milliseconds timeout_{60'000};  // the driver may have to start first
};

}  // namespace gantry::daemon
