// SPDX-License-Identifier: Apache-2.0
// The control socket of the share daemon: JSON lines, one answer per request. Only root and the
// user of the daemon may connect. All buffers are bounded, because a client may hang.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "base/sys/unique_fd.hpp"

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::daemon {

inline constexpr std::size_t kMaxRequestBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxResponseBytes = std::size_t{16} << 20;

class ControlSocket {
 public:
  using Id = std::uint64_t;  // of a connection; never reused
  struct Callbacks {
    // Returns the answer without its newline, or nullopt if answer() will be called later.
    std::function<std::optional<std::string>(Id client, std::string_view line)> question;
    std::function<void(Id client)> gone;
  };

  // Replaces a socket that a previous daemon left. The caller must hold the daemon's lock.
  static Result<std::unique_ptr<ControlSocket>> open(sys::Loop& loop, const std::string& path,
                                                     Callbacks callbacks);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  void answer(Id client, std::string text);  // answers a request that was left open
  pid_t pid_of(Id client) const;             // 0 if the client is gone
  std::size_t clients() const { return clients_.size(); }

 private:
  struct Client;
  ControlSocket(sys::Loop& loop, std::string path, Callbacks callbacks);
  Status listen();
  void accept_one();
  void on_ready(Id id, std::uint32_t events);
  bool read_input(Client& client);
  bool answer_lines(Id id, Client& client);
  static bool write_output(Client& client);
  void forget(Id id);

  sys::Loop& loop_;
  std::string path_;
  Callbacks callbacks_;
  sys::UniqueFd listener_;
  sys::Loop::Watch accepting_;
  sys::Loop::Timer retry_;
  Id last_ = 0;
  std::map<Id, std::unique_ptr<Client>> clients_;
};

}  // namespace gantry::daemon
