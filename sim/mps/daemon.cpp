// SPDX-License-Identifier: Apache-2.0
#include "sim/mps/daemon.hpp"

#include "sim/mps/commands.hpp"
#include "sim/mps/log.hpp"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace mps {
namespace {

using gantry::sim::PacketStatus;
using gantry::sim::Wait;

constexpr uint64_t kFirstRetryMs = 200;
constexpr const char* kName = "Control";

uint64_t now_ms() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

}  // namespace

void Daemon::note(const char* format, ...) {
  char text[sizeof(MpsPacket::text)];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  write_log(log_, kName, "%s", text);
}

void Daemon::answer(Connection& to, const char* format, ...) {
  char text[sizeof(MpsPacket::text)];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  note("%s", text);
  gantry::sim::send_text(to.fd, MpsMessage::Answer, text);
}

void Daemon::tell_server(const Server& server, const char* format, ...) {
  char text[sizeof(MpsPacket::text)];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  gantry::sim::send_text(server.fd, MpsMessage::Log, text);
}

Server* Daemon::server_with(pid_t pid) {
  for (Server& server : servers_) {
    if (server.pid != 0 && server.pid == pid) return &server;
  }
  return nullptr;
}

bool Daemon::any_server() const {
  for (const Server& server : servers_) {
    if (server.pid != 0) return true;
  }
  return false;
}

uint32_t Daemon::clients_of(const Server& server) const {
  uint32_t count = 0;
  for (const Connection& connection : connections_) {
    if (connection.fd >= 0 && connection.server == &server) ++count;
  }
  return count;
}

void Daemon::stop_server(Server& server) {
  note("Try shutting down server %d, backoff is %s", server.pid,
       server.stopping ? "enabled" : "disabled");
  tell_server(server, "Server has been notified to shutdown");
  const uint32_t clients = clients_of(server);
  server.retry_ms = server.stopping ? server.retry_ms * 2 : kFirstRetryMs;
  server.stopping = true;
  server.retry_at_ms = now_ms() + server.retry_ms;
  if (clients == 0) {
    tell_server(server, "Exiting");
    gantry::sim::send_text(server.fd, MpsMessage::Quit, "");
    return;
  }
  tell_server(server, "Server was unable to shutdown due to %u active clients", clients);
  note("Control will try shutting down server %d again in at most %llums", server.pid,
       static_cast<unsigned long long>(server.retry_ms));
}

void Daemon::end_server_now(Server& server) {
  if (clients_of(server) == 0) return;  // it ends by itself
  note("Force shutting down server %d", server.pid);
  gantry::sim::send_text(server.fd, MpsMessage::Quit, "");
}

void Daemon::retry_stops() {
  for (Server& server : servers_) {
    if (server.pid != 0 && server.stopping && now_ms() >= server.retry_at_ms) stop_server(server);
  }
}

int Daemon::timeout_ms() const {
  int shortest = -1;
  const uint64_t now = now_ms();
  for (const Server& server : servers_) {
    if (server.pid == 0 || !server.stopping) continue;
    const int left = server.retry_at_ms > now ? static_cast<int>(server.retry_at_ms - now) : 0;
    if (shortest < 0 || left < shortest) shortest = left;
  }
  return shortest;
}

void Daemon::quit(Connection& who) {
  quitting_ = true;
  quitter_ = &who;
  close(listener_);
  for (Server& server : servers_) {
    if (server.pid != 0) stop_server(server);
  }
}

bool Daemon::terminate_client(const Server& server, pid_t client) {
  bool found = false;
  for (Connection& connection : connections_) {
    if (connection.fd < 0 || connection.server != &server || connection.pid != client) continue;
    tell_server(server, "MPS server requesting client {PID: %d, Context ID: 1} to exit", client);
    found = gantry::sim::send_text(connection.fd, MpsMessage::Terminate, "") || found;
  }
  return found;
}

// The daemon lets in a client at once if its user's server is ready; otherwise the client waits for
// that server, and for the end of another user's.
void Daemon::let_in(Connection& client) {
  for (Server& server : servers_) {
    if (server.pid == 0) continue;
    if (server.user == client.user && server.ready && !server.stopping) {
      note("NEW CLIENT %d from user %u: Server already exists", client.pid, client.user);
      return welcome(client, server);
    }
  }
  note("NEW CLIENT %d from user %u: Server is not ready, push client to pending list", client.pid,
       client.user);
  bool others = false;
  for (Server& server : servers_) {
    if (server.pid == 0) continue;
    others = true;
    if (server.user != client.user && !server.stopping) stop_server(server);
  }
  if (!others && start_server(client.user) == nullptr) close_connection(client);
}

void Daemon::welcome(Connection& client, Server& server) {
  client.server = &server;
  client.id = ++server.clients;
  MpsPacket packet = {};
  packet.kind = MpsMessage::Welcome;
  packet.value = server.number;
  packet.percentage = server.limits.percentage;
  // Commands number the GPUs as the server does.
  for (uint32_t i = 0; i < server.devices.count; ++i) {
    const uint32_t gpu = server.devices.device[i].gpu;
    packet.gpus |= 1U << gpu;
    packet.limit_bytes[gpu] = server.limits.memory[i].bytes;
  }
  tell_server(server, "Client {PID: %d, Context ID: 0} connected", client.pid);
  gantry::sim::send_packet(client.fd, packet);
}

void Daemon::serve_waiting() {
  for (Connection& connection : connections_) {
    if (connection.fd >= 0 && connection.role == Role::Client && connection.server == nullptr)
      let_in(connection);
  }
}

// After the server has found its devices it sends them; later only its end is news.
void Daemon::read_server(Server& server) {
  const ssize_t got = recv(server.fd, &server.devices, sizeof server.devices, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got != static_cast<ssize_t>(sizeof server.devices) ||
      server.devices.count > GANTRY_SIM_MAX_GPUS)
    return server_ended(server);
  server.ready = true;
  server.number = server.devices.server;
  note("NEW SERVER %d: Ready", server.pid);
  tell_server(server, "Active Threads Percentage set to %.1f", server.limits.percentage);
  for (uint32_t i = 0; i < server.devices.count; ++i) {
    if (server.limits.memory[i].bytes != 0)
      tell_server(server, "Device pinned memory limit for device %u set to 0x%llx bytes", i,
                  static_cast<unsigned long long>(server.limits.memory[i].bytes));
  }
  tell_server(server, "Server has started");
  serve_waiting();
}

// Its clients notice that their connection was closed. A client that waits for a server that does
// not start would wait for ever.
void Daemon::server_ended(Server& server) {
  int status = 0;
  close(server.fd);
  waitpid(server.pid, &status, 0);
  note("Server %d exited with status %d", server.pid,
       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  for (Connection& connection : connections_) {
    const bool waits = connection.role == Role::Client && connection.server == nullptr &&
                       connection.user == server.user && !server.ready;
    if (connection.fd >= 0 && (connection.server == &server || waits)) close_connection(connection);
  }
  server = Server{};
  if (!quitting_) serve_waiting();
}

void Daemon::accept_connection() {
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  note("Accepting connection...");
  ucred who = {};
  socklen_t size = sizeof who;
  for (Connection& place : connections_) {
    if (place.fd >= 0) continue;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) break;
    place = Connection{};
    place.fd = fd;
    place.pid = who.pid;
    place.user = who.uid;
    return;
  }
  close(fd);
}

void Daemon::close_connection(Connection& connection) {
  if (connection.role == Role::User) note("UI closed");
  if (connection.server != nullptr && connection.server->pid != 0)
    tell_server(*connection.server, "Client process %d disconnected", connection.pid);
  if (quitter_ == &connection) quitter_ = nullptr;
  close(connection.fd);
  connection = Connection{};
}

void Daemon::run_command(Connection& user, const char* line) {
  if (user.role == Role::Unknown) note("NEW UI");
  user.role = Role::User;
  run_line(*this, user, line);
  if (quitter_ != &user) gantry::sim::send_text(user.fd, MpsMessage::End, "");
}

void Daemon::read_connection(Connection& connection) {
  MpsPacket packet = {};
  const PacketStatus received = receive_packet(connection.fd, Wait::No, packet);
  if (received == PacketStatus::Nothing) return;
  if (received == PacketStatus::Closed) return close_connection(connection);
  if (packet.kind == MpsMessage::Command && connection.role != Role::Client) {
    run_command(connection, packet.text);
  } else if (packet.kind == MpsMessage::Client && connection.role == Role::Unknown) {
    connection.role = Role::Client;
    if (quitting_) return close_connection(connection);
    let_in(connection);
  } else if (packet.kind == MpsMessage::Device && connection.server != nullptr &&
             packet.value < GANTRY_SIM_MAX_GPUS) {
    connection.devices |= 1U << packet.value;
    tell_server(*connection.server, "Status of client {PID: %d, Context ID: 1} is ACTIVE",
                connection.pid);
  } else {
    close_connection(connection);
  }
}

// The sockets with news, in the order: the listener, the servers, the connections.
void Daemon::wait_for_news(pollfd* polled) const {
  polled[0] = {quitting_ ? -1 : listener_, POLLIN, 0};
  for (int i = 0; i < kMaxServers; ++i)
    polled[1 + i] = {servers_[i].pid != 0 ? servers_[i].fd : -1, POLLIN, 0};
  for (int i = 0; i < kMaxConnections; ++i)
    polled[1 + kMaxServers + i] = {connections_[i].fd, POLLIN, 0};
  if (poll(polled, kMaxPolled, timeout_ms()) >= 0) return;
  for (int i = 0; i < kMaxPolled; ++i) polled[i].revents = 0;
}

// A place may have been emptied or filled again since the poll; reading does not wait.
void Daemon::read_news(const pollfd* polled) {
  if (polled[0].revents != 0) accept_connection();
  for (int i = 0; i < kMaxServers; ++i) {
    if (polled[1 + i].revents != 0 && servers_[i].pid != 0) read_server(servers_[i]);
  }
  for (int i = 0; i < kMaxConnections; ++i) {
    if (polled[1 + kMaxServers + i].revents != 0 && connections_[i].fd >= 0)
      read_connection(connections_[i]);
  }
}

void Daemon::run() {
  pollfd polled[kMaxPolled];
  while (!quitting_ || any_server()) {
    wait_for_news(polled);
    read_news(polled);
    retry_stops();
  }
  note("Exit with status 0");
}

void Daemon::answer_quit() {
  if (quitter_ != nullptr) gantry::sim::send_text(quitter_->fd, MpsMessage::End, "");
}

}  // namespace mps
