// SPDX-License-Identifier: Apache-2.0
#include "notebook/jobs.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace gantry::workload {
namespace {

constexpr std::chrono::milliseconds kPollInterval{10};
constexpr std::size_t kOutputLimit = std::size_t{64} << 10;

Result<pid_t> spawn(const std::vector<std::string>& argv, int output) {
  std::vector<char*> words;
  words.reserve(argv.size() + 1);
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int bad = ::posix_spawnp(&pid, words[0], &actions, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (bad != 0) return Error::sys(bad, argv[0]);
  return pid;
}

void read_output(int fd, std::string& output) {
  std::array<char, 4096> buffer{};
  while (true) {
    const auto got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    const auto room = kOutputLimit - output.size();
    output.append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
  }
}

}  // namespace

Jobs::~Jobs() {
  for (const Job& job : jobs_) {
    ::kill(job.pid, SIGKILL);
    ::waitpid(job.pid, nullptr, WNOHANG);
  }
}

Status Jobs::start(const std::vector<std::string>& argv, std::chrono::milliseconds deadline,
                   Done done) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::sys(errno, "pipe2");
  sys::UniqueFd output(ends[0]);
  const sys::UniqueFd input(ends[1]);
  ::fcntl(output.get(), F_SETFL, O_NONBLOCK);  // only our end
  GANTRY_TRY(const pid_t pid, spawn(argv, input.get()));
  jobs_.push_back({.pid = pid,
                   .output = std::move(output),
                   .deadline = deadline,
                   .done = std::move(done),
                   .started = std::chrono::steady_clock::now()});
  if (jobs_.size() == 1) timer_ = loop_.every(kPollInterval, [this] { poll(); });
  return {};
}

void Jobs::poll() {
  struct EndedJob {
    Done done;
    JobResult result;
  };
  std::vector<EndedJob> ended;
  const auto now = std::chrono::steady_clock::now();
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    int status = 0;
    const bool over = ::waitpid(job->pid, &status, WNOHANG) != 0;
    read_output(job->output.get(), job->result.output);
    job->result.took = std::chrono::duration_cast<std::chrono::milliseconds>(now - job->started);
    const bool late = !over && job->result.took >= job->deadline;
    if (late) ::kill(job->pid, SIGKILL);
    if ((over || late) && job->done) {
      job->result.hung = late;
      if (late) status = SIGKILL;
      job->result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      ended.push_back({std::exchange(job->done, {}), std::move(job->result)});
      job->result = {};
    }
    job = over ? jobs_.erase(job) : std::next(job);
  }
  if (jobs_.empty()) timer_.cancel();
  for (const EndedJob& each : ended) each.done(each.result);  // may start other jobs
}

}  // namespace gantry::workload
