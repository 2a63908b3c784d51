// SPDX-License-Identifier: Apache-2.0
// several N: N processes of one share take memory at the same time until all are refused. A line on
// standard input later the first is killed; how long until another one has its memory?
#include "families.hpp"
#include "said.hpp"

#include <sys/wait.h>

#include <csignal>
#include <vector>

namespace {

struct Report {
  std::size_t bytes;
  int strange;
  double ms;
};

struct Child {
  pid_t pid = 0;
  int orders = -1;  // one byte: go on
  int reports = -1;
};

void tell(int fd, const Report& report) {
  if (write(fd, &report, sizeof report) != sizeof report) _exit(1);
}

void wait_for_order(int fd) {
  char byte = 0;
  if (read(fd, &byte, 1) != 1) _exit(0);
}

[[noreturn]] void child(int orders, int reports) {
  ready();
  const auto& plain = families().front();
  tell(reports, {0, 0, 0});
  wait_for_order(orders);
  const auto taken = take_all(plain, 64 << 20);
  tell(reports, {taken.bytes, taken.strange, 0});
  wait_for_order(orders);
  // The one that is told so: until there is room again.
  const double start = now_ms();
  Piece piece;
  while (plain.take(64 << 20, piece) != CUDA_SUCCESS && now_ms() - start < 10000) usleep(200);
  tell(reports, {0, 0, now_ms() - start});
  wait_for_order(orders);
  _exit(0);
}

Child start() {
  int down[2];
  int up[2];
  if (pipe(down) != 0 || pipe(up) != 0) exit(1);
  const pid_t pid = fork();
  if (pid == 0) {
    close(down[1]);
    child(down[0], up[1]);
  }
  close(down[0]);
  close(up[1]);
  return {pid, down[1], up[0]};
}

Report report_of(const Child& c) {
  Report report{};
  if (read(c.reports, &report, sizeof report) != sizeof report) {
    say("{\"failed\": \"a child ended\"}");
    exit(1);
  }
  return report;
}

void order(const Child& c) {
  if (write(c.orders, "x", 1) != 1) exit(1);
}

}  // namespace

int main(int count, char** words) {
  std::vector<Child> all;
  for (int i = 0; i < (count > 1 ? atoi(words[1]) : 4); ++i) all.push_back(start());
  for (const auto& c : all) report_of(c);
  for (const auto& c : all) order(c);
  std::size_t sum = 0;
  int strange = 0;
  for (const auto& c : all) {
    const auto report = report_of(c);
    sum += report.bytes;
    if (report.strange != 0) strange = report.strange;
  }
  say("{\"processes\": %zu, \"granted\": %zu, \"strange\": %d}", all.size(), sum, strange);
  wait_for_a_line();
  kill(all[0].pid, SIGKILL);
  waitpid(all[0].pid, nullptr, 0);
  order(all[1]);
  say("{\"given_back_ms\": %.1f}", report_of(all[1]).ms);
  for (std::size_t i = 1; i < all.size(); ++i) kill(all[i].pid, SIGKILL);
  return 0;
}
