// SPDX-License-Identifier: Apache-2.0
// Runs work that may hang or crash in a child process with a deadline.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/unique_fd.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
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
  const ChildUser* user = nullptr;  // nullptr: keep our user
  int program = -1;                 // spawn(): a descriptor of the file to run (spawn.hpp)
};

// Sends the answer to the process that waits in join(). A failure cannot be reported.
void send_answer(int fd, std::string answer);

// A child process that sends one answer while the parent continues. The destructor kills a child
// that was not joined.
class Child {
 public:
  // Runs `work` in a forked child. The process must have only one thread.
  static Result<Child> start(const std::function<std::string()>& work, const ChildOptions& options);

  // Runs the program argv[0], a path, which calls send_answer(kSpawnedDescriptor, ...). It runs as
  // our user. Any thread may call it. Fails with the errno of execve.
  static Result<Child> spawn(const std::vector<std::string>& argv, const ChildOptions& options);

  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  // Returns the bytes of the answer. Timeout if the deadline, counted from the start, has
  // passed (the child is killed); Internal with the signal's name if it crashed; Denied if it could
  // not change to the user. Call it only once.
  Result<std::string> join();

 private:
  Child(pid_t pid, UniqueFd answer, const ChildOptions& options);
  pid_t pid_;
  UniqueFd answer_;
  std::chrono::steady_clock::time_point until_;
  std::size_t limit_bytes_;
  ChildUser user_;  // the user that was requested
};

// start and join in one.
Result<std::string> run_in_child(const std::function<std::string()>& work,
                                 const ChildOptions& options);

struct CommandResult {
  int status = 0;      // exit status, 128 + signal when killed
  std::string output;  // stdout and stderr together
};

// Of a command that prints more than 4 MiB, such as a long build.
enum class LongOutput : std::uint8_t {
  Fails,    // Corrupt; the command is killed
  KeepsEnd  // the end of it is enough
};

struct CommandOptions {
  std::chrono::milliseconds deadline{10'000};
  std::string input{};                     // its standard input, at most 4096 bytes
  std::vector<std::string> environment{};  // replaces our environment unless empty
  // Runs in the child before exec. It may only make system calls, because another thread may have
  // held a lock during the fork. Return false, with errno set, to end the child.
  std::function<bool()> before{};
  LongOutput long_output = LongOutput::Fails;
  int stop = -1;  // a descriptor that becomes readable to kill it: Timeout
};

// Runs a program from PATH without a shell and waits until it exits. A daemon that it starts in the
// background keeps running. At the deadline the program is killed with its process group.
Result<CommandResult> run_command(const std::vector<std::string>& argv,
                                  const CommandOptions& options);
Result<CommandResult> run_command(const std::vector<std::string>& argv,
                                  std::chrono::milliseconds deadline);

}  // namespace gantry::sys
