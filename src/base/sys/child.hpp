// SPDX-License-Identifier: Apache-2.0
// Work that may hang or crash (the vendor's libraries) happens in a forked child with a deadline.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace gantry::sys {

struct ChildUser {  // drops to this user and group, no supplementary groups, no capabilities
  unsigned uid = 0;
  unsigned gid = 0;
};

struct ChildOptions {
  std::chrono::milliseconds deadline{10'000};
  std::size_t limit_bytes = std::size_t{16} << 20;
  const ChildUser* user = nullptr;  // nullptr: stay who we are
};

// `work` running in a forked child, while the parent does something else. Start it from a process
// with one thread. A child that is not joined is killed.
class Child {
 public:
  static Result<Child> start(const std::function<std::string()>& work, const ChildOptions& options);

  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  // The bytes that `work` produced. Timeout when the deadline, counted from start, passed (the
  // child is killed), Internal with the signal's name when it crashed, Denied when the user could
  // not be taken. Once only.
  Result<std::string> join();

 private:
  Child(pid_t pid, UniqueFd answer, const ChildOptions& options);
  pid_t pid_;
  UniqueFd answer_;
  std::chrono::steady_clock::time_point until_;
  std::size_t limit_bytes_;
  ChildUser user_;  // who it was told to be
};

// start and join in one.
Result<std::string> run_in_child(const std::function<std::string()>& work,
                                 const ChildOptions& options);

struct CommandResult {
  int status = 0;      // exit status, 128 + signal when killed
  std::string output;  // stdout and stderr together
};

struct CommandOptions {
  std::chrono::milliseconds deadline{10'000};
  std::string input{};                     // what it reads, at most 4096 bytes
  std::vector<std::string> environment{};  // instead of ours, unless empty
  // In the child, before the program: system calls alone, because other threads may have held
  // locks when it was forked. False, with errno, ends it.
  std::function<bool()> before{};
};

// Runs a program, found in PATH, with no shell. It is done when it has ended: one that goes to the
// background leaves its daemon behind.
Result<CommandResult> run_command(const std::vector<std::string>& argv,
                                  const CommandOptions& options);
Result<CommandResult> run_command(const std::vector<std::string>& argv,
                                  std::chrono::milliseconds deadline);

}  // namespace gantry::sys
