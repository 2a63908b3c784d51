// SPDX-License-Identifier: Apache-2.0
//
// nvidia-cuda-mps-control of the simulated driver: the daemon (-d, -f), or the client that sends
// it commands.
#include "sim/driver/mps_limits_internal.hpp"
#include "sim/mps/daemon.hpp"
#include "sim/mps/log.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace gantry::sim;

constexpr const char* kHelp =
    "nvidia-cuda-mps-control [-d | -f | COMMAND]\n"
    "  -d  run the control daemon in the background\n"
    "  -f  run the control daemon in the foreground\n"
    "  COMMAND, or lines of the standard input, go to the daemon in CUDA_MPS_PIPE_DIRECTORY.\n"
    "This is the program of a simulated machine.\n";

enum class DaemonMode : uint8_t { Background, Foreground };

int open_in_pipe_directory(const char* name, int flags) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", mps_pipe_directory(), name);
  return open(path, flags | O_CLOEXEC, 0666);
}

int fail(const char* doing) {
  fprintf(stderr, "%s in %s: %s\n", doing, mps_pipe_directory(), strerror(errno));
  return 1;
}

constexpr const char* kPidFile = "nvidia-cuda-mps-control.pid";

void write_pid_file() {
  const int fd = open_in_pipe_directory(kPidFile, O_WRONLY | O_CREAT | O_TRUNC);
  if (fd < 0) return;
  fchmod(fd, 0666);
  dprintf(fd, "%d", static_cast<int>(getpid()));
  close(fd);
}

void remove_pid_file() {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", mps_pipe_directory(), kPidFile);
  unlink(path);
}

// The parent returns when the child is ready for commands: the socket listens already, and the
// child's pid is in its file.
void go_to_background() {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) exit(fail("Cannot start the daemon"));
  const pid_t child = fork();
  if (child < 0) exit(fail("Cannot start the daemon"));
  char byte = 0;
  if (child > 0) {
    close(ready[1]);
    _exit(read(ready[0], &byte, 1) == 1 ? 0 : 1);
  }
  setsid();
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2; ++fd) dup2(nowhere, fd);
  if (nowhere > 2) close(nowhere);
  write_pid_file();
  if (write(ready[1], &byte, 1) != 1) _exit(1);
  close(ready[0]);
  close(ready[1]);
}

int run_daemon(DaemonMode mode) {
  if (mkdir(mps_pipe_directory(), 0755) != 0 && errno != EEXIST)
    return fail("Cannot make the directory");
  const int lock = open_in_pipe_directory("control_lock", O_RDWR | O_CREAT);
  if (lock < 0) return fail("Cannot open control_lock");
  fchmod(lock, 0666);
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    puts("An instance of this daemon is already running");
    return 1;
  }
  const int log = mps::open_log("control.log");
  if (log < 0) return fail("Cannot open control.log");
  const int listener = listen_for_mps(mps_pipe_directory());
  if (listener < 0) return fail("Cannot listen");
  if (mode == DaemonMode::Background) {
    go_to_background();
  } else {
    write_pid_file();
  }
  mps::write_log(log, "Control", "Starting control daemon using socket %s/control",
                 mps_pipe_directory());
  mps::write_log(log, "Control",
                 "To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY=%s",
                 mps_pipe_directory());
  static mps::Daemon daemon(listener, log);  // too large for a stack
  const char* percentage = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
  if (percentage != nullptr) parse_percentage(percentage, daemon.limits.percentage);
  daemon.run();
  remove_pid_file();
  daemon.answer_quit();
  return 0;
}

// False if the daemon went away, as after `quit`.
bool send_command(int daemon, const char* line) {
  if (!send_text(daemon, MpsMessage::Command, line)) return false;
  MpsPacket packet = {};
  while (receive_packet(daemon, Wait::Yes, packet) == PacketStatus::Packet) {
    if (packet.kind == MpsMessage::End) return true;
    puts(packet.text);
  }
  return false;
}

int send_input(int daemon) {
  char line[sizeof(MpsPacket::text)];
  while (fgets(line, sizeof line, stdin) != nullptr) {
    line[strcspn(line, "\n")] = '\0';
    if (line[0] != '\0' && !send_command(daemon, line)) break;
    fflush(stdout);
  }
  return 0;
}

int send_words(int daemon, int argc, char** argv) {
  char line[sizeof(MpsPacket::text)] = "";
  for (int i = 1; i < argc; ++i) {
    const size_t used = strlen(line);
    snprintf(line + used, sizeof line - used, "%s%s", i == 1 ? "" : " ", argv[i]);
  }
  send_command(daemon, line);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* first = argc > 1 ? argv[1] : "";
  if (strcmp(first, "-h") == 0 || strcmp(first, "--help") == 0) {
    fputs(kHelp, stdout);
    return 0;
  }
  if (strcmp(first, "-d") == 0 || strcmp(first, "--daemon") == 0)
    return run_daemon(DaemonMode::Background);
  if (strcmp(first, "-f") == 0) return run_daemon(DaemonMode::Foreground);
  if (first[0] == '-') {
    fputs(kHelp, stderr);
    return 1;
  }
  const int daemon = connect_to_mps(mps_pipe_directory());
  if (daemon < 0) {
    puts("Cannot find MPS control daemon process");
    return argc > 1 ? 0 : 1;  // as the vendor's does
  }
  return argc > 1 ? send_words(daemon, argc, argv) : send_input(daemon);
}
