// SPDX-License-Identifier: Apache-2.0
// The control daemon: its servers, one for each user at a time, and the connections of clients and
// of people who type commands.
#pragma once

#include "sim/driver/mps.h"
#include "sim/driver/mps_socket_internal.hpp"

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

namespace mps {

using gantry::sim::MpsMessage;
using gantry::sim::MpsPacket;

struct MemoryLimit {
  uint64_t bytes = 0;  // 0: none
  char text[32] = {};  // as it was set
};

struct Limits {
  double percentage = 100;
  MemoryLimit memory[GANTRY_SIM_MAX_GPUS];
};

struct Server {
  pid_t pid = 0;  // 0: this place is free
  uid_t user = 0;
  int fd = -1;
  bool ready = false;
  bool stopping = false;
  uint32_t number = 0;   // as the accounting knows it
  uint32_t clients = 0;  // so far
  uint64_t retry_at_ms = 0, retry_ms = 0;
  Limits limits;
  gantry_sim_mps_devices devices = {};
};

enum class Role : uint8_t { Unknown, User, Client };

struct Connection {
  int fd = -1;  // -1: this place is free
  Role role = Role::Unknown;
  pid_t pid = 0;
  uid_t user = 0;
  Server* server = nullptr;  // of a client; nullptr: it waits for one
  uint32_t id = 0;           // of a client, within its server
  uint32_t devices = 0;      // that a client uses, one bit each
};

class Daemon {
 public:
  static constexpr int kMaxServers = 8;
  static constexpr int kMaxConnections = 256;
  static constexpr int kMaxPolled = 1 + kMaxServers + kMaxConnections;

  // `listener`: the socket in the pipe directory. `log`: control.log.
  Daemon(int listener, int log) : listener_(listener), log_(log) {}
  // Serves until `quit`, then until the last server has ended.
  void run();
  // Tells the client that sent `quit` that the daemon has ended. Call it when no file is left.
  void answer_quit();

  // For the commands.
  void answer(Connection& to, const char* format, ...) __attribute__((format(printf, 3, 4)));
  void note(const char* format, ...) __attribute__((format(printf, 2, 3)));
  Server* server_with(pid_t pid);
  Server* start_server(uid_t user);
  // Ends a server when its last client has ended; tries again and again.
  void stop_server(Server& server);
  void end_server_now(Server& server);
  void quit(Connection& who);
  bool terminate_client(const Server& server, pid_t client);

  Server* servers() { return servers_; }
  Connection* connections() { return connections_; }
  Limits limits;  // of servers to come
  long priority = 0;

 private:
  void wait_for_news(pollfd* polled) const;
  void read_news(const pollfd* polled);
  void accept_connection();
  void read_connection(Connection& connection);
  void run_command(Connection& user, const char* line);
  void let_in(Connection& client);
  void welcome(Connection& client, Server& server);
  void read_server(Server& server);
  void server_ended(Server& server);
  void serve_waiting();
  void close_connection(Connection& connection);
  void retry_stops();
  int timeout_ms() const;
  bool any_server() const;
  void tell_server(const Server& server, const char* format, ...)
      __attribute__((format(printf, 3, 4)));
  uint32_t clients_of(const Server& server) const;

  int listener_;
  int log_;
  Connection* quitter_ = nullptr;
  bool quitting_ = false;
  Server servers_[kMaxServers];
  Connection connections_[kMaxConnections];
};

}  // namespace mps
