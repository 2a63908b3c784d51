// SPDX-License-Identifier: Apache-2.0
// Starts nvidia-cuda-mps-server, which is beside this program.
#include "sim/mps/daemon.hpp"
#include "sim/mps/log.hpp"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

namespace mps {
namespace {

constexpr const char* kServerProgram = "nvidia-cuda-mps-server";

void exec_server() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = '\0';
  char* slash = strrchr(path, '/');
  if (slash == nullptr || snprintf(slash + 1, sizeof path - static_cast<size_t>(slash + 1 - path),
                                   "%s", kServerProgram) <= 0)
    return;
  char name[32];
  snprintf(name, sizeof name, "%s", kServerProgram);
  char* const words[] = {name, nullptr};
  execv(path, words);
}

// In the child. Its standard input is the daemon's socket, its output is server.log.
[[noreturn]] void become_server(uid_t user, int socket_fd) {
  const int log = open_log("server.log");
  if (log >= 0 && dup2(socket_fd, STDIN_FILENO) >= 0 && dup2(log, STDOUT_FILENO) >= 0 &&
      (geteuid() == user || setuid(user) == 0))
    exec_server();
  _exit(1);
}

}  // namespace

Server* Daemon::start_server(uid_t user) {
  Server* place = nullptr;
  for (Server& server : servers_) {
    if (server.pid != 0 && server.user == user) return &server;
    if (server.pid == 0) place = &server;
  }
  int ends[2] = {-1, -1};
  if (place == nullptr || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return nullptr;
  const pid_t child = fork();
  if (child == 0) {
    write_log(log_, "Control", "Starting new server %d for user %u", static_cast<int>(getpid()),
              user);
    become_server(user, ends[1]);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return nullptr;
  }
  *place = Server{};
  place->pid = child;
  place->user = user;
  place->fd = ends[0];
  place->limits = limits;
  return place;
}

}  // namespace mps
