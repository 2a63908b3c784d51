// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/start_detached.hpp"

#include "base/sys/unique_fd.hpp"
#include "sharing/daemon/log_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace gantry::daemon {
namespace {

// In the child: only system calls. If something fails, errno comes back through the pipe, which is
// closed when the program starts.
[[noreturn]] void become(char* const* argv, int null, int log, int report) {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  const pid_t second = ::fork();  // not a session leader, so it can never get a terminal
  if (second > 0) ::_exit(0);
  if (second == 0 && ::dup2(null, STDIN_FILENO) >= 0 && ::dup2(null, STDOUT_FILENO) >= 0 &&
      ::dup2(log, STDERR_FILENO) >= 0 && ::chdir("/") == 0)
    ::execvp(argv[0], argv);
  const int error = errno;
  (void)!::write(report, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

Result<std::uint64_t> start_detached(const std::vector<std::string>& argv, const std::string& log) {
  GANTRY_TRY(const auto words, open_log(log));
  struct stat before {};
  if (::fstat(words.get(), &before) != 0) return Error::sys(errno, "fstat").in(log);
  const sys::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return Error::sys(errno, "open").in("/dev/null");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::sys(errno, "pipe2");
  const sys::UniqueFd reading(ends[0]);
  sys::UniqueFd writing(ends[1]);
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (const auto& word : argv) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  const pid_t first = ::fork();
  if (first < 0) return Error::sys(errno, "fork");
  if (first == 0) become(pointers.data(), null.get(), words.get(), writing.get());
  writing.reset();
  ::waitpid(first, nullptr, 0);
  int error = 0;
  if (::read(reading.get(), &error, sizeof error) == static_cast<ssize_t>(sizeof error))
    return Error::sys(error, "exec").in(argv.front());
  return static_cast<std::uint64_t>(before.st_size);
}

}  // namespace gantry::daemon
