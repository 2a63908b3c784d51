// SPDX-License-Identifier: Apache-2.0
// Shared by these programs: they print lines of JSON and continue after a line on standard input.
#pragma once

#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>

// A program that crashes says where: there is no debugger on that machine.
inline void tell_where(int signal) {
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  _exit(128 + signal);
}
inline const auto told_where = ::signal(SIGSEGV, tell_where);

inline double now_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

inline double unix_ms() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

__attribute__((format(printf, 1, 2))) inline void say(const char* form, ...) {
  va_list values;
  va_start(values, form);
  vprintf(form, values);
  va_end(values);
  putchar('\n');
  fflush(stdout);
}

// Waits for a line. The program ends when the writer has closed the pipe.
inline void wait_for_a_line() {
  char line[256];
  if (fgets(line, sizeof line, stdin) == nullptr) exit(0);
}

// For what must work; a refusal is never checked with this.
#define MUST(call)                                                                    \
  do {                                                                                \
    const int must_result = static_cast<int>(call);                                   \
    if (must_result != 0) {                                                           \
      say("{\"failed\": \"%s:%d\", \"error\": %d}", __FILE__, __LINE__, must_result); \
      exit(1);                                                                        \
    }                                                                                 \
  } while (false)
