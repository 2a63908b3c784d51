// SPDX-License-Identifier: Apache-2.0
#include "base/sys/deadline_read.hpp"

#include "base/core/clock.hpp"
#include "base/sys/descriptor.hpp"
#include "base/sys/detached_process.hpp"
#include "base/sys/socket_wait.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace gantry::sys {
namespace {

using FileName = std::array<char, 32>;  // /proc/self/fd/N

// The header that the reader sends before the bytes of each file.
struct ReadHeader {
  enum Kind : int { Done, OpenFailed, ReadFailed };
  int kind = Done;
  int error = 0;
  std::size_t size = 0;
};

// Prepared before the fork: the reader may be forked from a process with threads, so it may make
// system calls only.
struct ReaderJob {
  int answer = -1;
  std::vector<FileName> files;
  std::vector<int> keep;        // the reader's descriptors, in ascending order
  unsigned max_descriptor = 0;  // where close_range is missing
  unsigned end_seconds = 0;     // then the reader ends, if the kernel lets it
};

void send_header(const ReaderJob& job, const ReadHeader& header) {
  if (::write(job.answer, &header, sizeof header) < 0) return;  // the caller gave up
}

// A reader that hangs must not keep a lock or the other end of a pipe.
void keep_own_descriptors(const ReaderJob& job) {
  close_all_but(job.keep, job.max_descriptor);
}

void read_and_send(const ReaderJob& job, const FileName& file) {
  const int fd = ::open(file.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return send_header(job, {.kind = ReadHeader::OpenFailed, .error = errno});
  std::array<char, kMaxKernelRead> bytes{};
  const auto got = ::read(fd, bytes.data(), bytes.size());
  if (got < 0) {
    send_header(job, {.kind = ReadHeader::ReadFailed, .error = errno});
  } else {
    const auto size = static_cast<std::size_t>(got);
    send_header(job, {.size = size});
    if (::write(job.answer, bytes.data(), size) < 0) ::_exit(1);  // the caller gave up
  }
  ::close(fd);
}

// A FIFO in the place of a file, as in a tree that someone made, would keep the reader for ever.
void run_reader(const ReaderJob& job) {
  ::alarm(job.end_seconds);
  keep_own_descriptors(job);
  for (const auto& file : job.files) read_and_send(job, file);
}

// Adds to `bytes` all that comes through the pipe until the reader ends.
Status collect_answers(int pipe, pid_t reader, AnswerDeadline& answer_by, std::string& bytes) {
  std::array<char, kMaxKernelRead> buffer{};
  for (;;) {
    const auto waited = wait_for(pipe, POLLIN, {.deadline = Clock::now() + answer_by.left()});
    if (!waited.ok() && waited.error().code() == Errc::Timeout && answer_by.extend(reader))
      continue;
    GANTRY_CHECK(waited);
    const auto got = ::read(pipe, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::sys(errno, "read from the reading process");
    if (got == 0) return {};
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

// Takes one answer off the front; nullopt if it is not complete.
std::optional<Result<std::string>> take_answer(std::string_view& bytes, std::string_view shown) {
  ReadHeader header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (bytes.size() - sizeof header < header.size) return std::nullopt;
  const auto text = bytes.substr(sizeof header, header.size);
  bytes.remove_prefix(sizeof header + header.size);
  switch (header.kind) {
    case ReadHeader::Done: return std::string(text);
    case ReadHeader::OpenFailed: return Error::sys(header.error, fmt::format("open {}", shown));
    default: return Error::sys(header.error, fmt::format("read {}", shown));
  }
}

// A file of a simulated machine lies on a disk or in memory: no device's lock is behind it, and two
// processes for each read would be most of the work of a test.
bool is_plain_file(int fd) {
  struct stat found {};
  struct statfs system {};
  return ::fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && ::fstatfs(fd, &system) == 0 &&
         system.f_type != SYSFS_MAGIC && system.f_type != PROC_SUPER_MAGIC;
}

// Opens the file by its path: /proc may be missing where such a machine is looked at.
Result<std::string> read_here(const Host& host, const std::string& path) {
  GANTRY_TRY(const UniqueFd fd, host.open(path, O_RDONLY | O_NONBLOCK));
  std::string bytes(kMaxKernelRead, '\0');
  const auto got = ::read(fd.get(), bytes.data(), bytes.size());
  if (got < 0) return Error::sys(errno, fmt::format("read {}", host.outside(path)));
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

// A file that only a reader may open.
struct PendingFile {
  std::size_t index = 0;  // of its path
  UniqueFd file;          // O_PATH: looks the file up, opens nothing
};

FileName procfs_name(const UniqueFd& file) {
  FileName name{};
  fmt::format_to_n(name.data(), name.size() - 1, "/proc/self/fd/{}", file.get());
  return name;
}

ReaderJob job_of(std::span<const PendingFile> files, int answer,
                 std::chrono::milliseconds deadline) {
  const auto seconds =
      std::chrono::ceil<std::chrono::seconds>(AnswerDeadline::longest(deadline)).count();
  ReaderJob job{.answer = answer,
                .keep = {answer},
                .max_descriptor = highest_descriptor(),
                .end_seconds = static_cast<unsigned>(seconds) + 1};
  for (const auto& one : files) {
    job.files.push_back(procfs_name(one.file));
    job.keep.push_back(one.file.get());
  }
  std::sort(job.keep.begin(), job.keep.end());
  return job;
}

class DeadlineReader {
 public:
  DeadlineReader(const Host& host, std::span<const std::string> paths,
                 std::chrono::milliseconds deadline)
      : host_(host),
        paths_(paths),
        deadline_(deadline),
        results_(paths.size(), Error(Errc::Internal, "not read")) {}

  std::vector<Result<std::string>> run(AfterTimeout after_timeout) {
    for (std::size_t i = 0; i < paths_.size(); ++i) look_up(i);
    std::span<const PendingFile> left = pending_;
    while (!left.empty()) {
      const auto [read, ended] = read_until_deadline(left);
      left = left.subspan(read);
      if (left.empty()) break;
      const bool timed_out = ended.code() == Errc::Timeout;
      results_[left.front().index] = timed_out ? timeout(left.front()) : ended;
      const auto failed = std::exchange(left, left.subspan(1)).front().index;
      if (timed_out && after_timeout == AfterTimeout::GoOn) continue;
      for (const auto& one : left) results_[one.index] = results_[failed];
      break;
    }
    return std::move(results_);
  }

 private:
  std::string shown(std::size_t index) const { return host_.outside(paths_[index]); }

  Error timeout(const PendingFile& one) const {
    if (late_ == LateReason::NotRunning)
      return {Errc::Timeout,
              fmt::format("the read of {} did not return within {} ms: its process did not get to "
                          "run, because the machine is overloaded or was paused",
                          shown(one.index), AnswerDeadline::longest(deadline_).count())};
    return {Errc::Timeout, fmt::format("the read of {} did not return within {} ms: the kernel "
                                       "holds the lock of the device",
                                       shown(one.index), deadline_.count())};
  }

  void look_up(std::size_t index) {
    auto file = host_.open(paths_[index], O_PATH);
    if (!file.ok()) {
      results_[index] = file.error();
    } else if (is_plain_file(file->get())) {
      results_[index] = read_here(host_, paths_[index]);
    } else {
      pending_.push_back({.index = index, .file = *std::move(file)});
    }
  }

  // How many were read, and why not more; the reason counts only if some are left.
  struct ReadFiles {
    std::size_t count = 0;
    Error ended;
  };
  ReadFiles read_until_deadline(std::span<const PendingFile> files) {
    std::string bytes;
    const auto ended = collect(files, bytes);
    std::string_view left = bytes;
    std::size_t count = 0;
    for (; count < files.size(); ++count) {
      auto answer = take_answer(left, shown(files[count].index));
      if (!answer) break;
      results_[files[count].index] = *std::move(answer);
    }
    if (!ended.ok()) return {count, ended.error()};
    return {count, Error(Errc::Internal, "the process that reads for Gantry was killed")};
  }

  Status collect(std::span<const PendingFile> files, std::string& bytes) {
    AnswerDeadline answer_by(deadline_);
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::sys(errno, "pipe");
    const UniqueFd mine(ends[0]);
    UniqueFd theirs(ends[1]);
    const auto job = job_of(files, theirs.get(), deadline_);
    GANTRY_TRY(const auto reader, start_detached([&] { run_reader(job); }));
    theirs.reset();
    auto collected = collect_answers(mine.get(), reader, answer_by, bytes);
    if (!collected.ok()) late_ = late_reason(reader, deadline_);
    return collected;
  }

  const Host& host_;
  std::span<const std::string> paths_;
  std::chrono::milliseconds deadline_;
  LateReason late_ = LateReason::InKernel;  // of the last reader that timed out
  std::vector<PendingFile> pending_;
  std::vector<Result<std::string>> results_;
};

}  // namespace

std::vector<Result<std::string>> read_with_deadline(const Host& host,
                                                    std::span<const std::string> paths,
                                                    std::chrono::milliseconds deadline,
                                                    AfterTimeout after_timeout) {
  return DeadlineReader(host, paths, deadline).run(after_timeout);
}

Result<std::string> read_with_deadline(const Host& host, std::string_view path,
                                       std::chrono::milliseconds deadline) {
  const std::string only(path);
  return read_with_deadline(host, std::span(&only, 1), deadline, AfterTimeout::GiveUp).front();
}

}  // namespace gantry::sys
