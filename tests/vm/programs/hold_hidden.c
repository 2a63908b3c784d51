// SPDX-License-Identifier: GPL-2.0 OR MIT
// hold_hidden FILE: keeps FILE open until standard input ends, in a message that waits in a socket.
// The kernel counts the open file, but no process has a descriptor of it, so a search through
// /proc/PID/fd does not find it. An unbind that was checked before it starts meets such a user.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int send_descriptor(int socket, int fd) {
  union {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
  } control = {.room = {0}};
  char byte = 0;
  struct iovec data = {.iov_base = &byte, .iov_len = 1};
  struct msghdr message = {.msg_iov = &data,
                           .msg_iovlen = 1,
                           .msg_control = control.room,
                           .msg_controllen = sizeof control.room};
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}

int main(int argc, char** argv) {
  int ends[2], fd;
  char byte;
  if (argc != 2) return 2;
  fd = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 ||
      send_descriptor(ends[0], fd) != 0) {
    perror(argv[1]);
    return 1;
  }
  close(fd);
  printf("holding\n");
  fflush(stdout);
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
