// SPDX-License-Identifier: Apache-2.0
// The keeper's own door: JSON lines, one answer for each question, for root alone (and for whoever
// runs the keeper). Bounded in every direction, because a client may be stuck.
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
  using Id = std::uint64_t;  // of a connection; never used twice
  struct Callbacks {
    // The answer, without its newline; none: answer() is called later.
    std::function<std::optional<std::string>(Id client, std::string_view line)> question;
    std::function<void(Id client)> gone;
  };

  // Replaces a socket that a former keeper left: whoever calls has the keeper's lock.
  static Result<std::unique_ptr<ControlSocket>> open(sys::Loop& loop, const std::string& path,
                                                     Callbacks callbacks);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  void answer(Id client, std::string text);  // to a question that was left open
  pid_t pid_of(Id client) const;             // 0 when it has gone
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
