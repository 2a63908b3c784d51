// SPDX-License-Identifier: Apache-2.0
#include "base/sys/spawn.hpp"

#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

extern char** environ;  // NOLINT: POSIX has it nowhere else

namespace gantry::sys {
namespace {

class SpawnSettings {
 public:
  explicit SpawnSettings(int descriptor) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_adddup2(&actions_, descriptor, kSpawnedDescriptor);
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

Result<pid_t> spawn(const std::vector<std::string>& argv, int descriptor, int program) {
  std::vector<char*> words;
  words.reserve(argv.size() + 1);
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  // The child gets its descriptor 3 first, so the program must have another number.
  const UniqueFd file(program < 0 ? -1 : ::fcntl(program, F_DUPFD_CLOEXEC, kSpawnedDescriptor + 1));
  if (program >= 0 && !file.valid()) return Error::sys(errno, "fcntl");
  const auto path = program < 0 ? argv[0] : fmt::format("/proc/self/fd/{}", file.get());
  const SpawnSettings settings(descriptor);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, path.c_str(), settings.actions(), settings.attributes(),
                                   words.data(), environ);
  if (failed != 0) return Error::sys(failed, fmt::format("starting {}", argv[0]));
  return pid;
}

std::string describe_exit(int status) {
  if (WIFSIGNALED(status)) return fmt::format("crashed: {}", ::strsignal(WTERMSIG(status)));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

std::optional<int> reap(pid_t pid) {
  int status = 0;
  const auto done = ::waitpid(pid, &status, WNOHANG);
  if (done == pid) return status;
  if (done < 0 && errno == ECHILD) return 0;
  return std::nullopt;
}

}  // namespace gantry::sys
