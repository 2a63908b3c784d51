// SPDX-License-Identifier: Apache-2.0
#include "base/sys/deadline_read.hpp"

#include "base/core/clock.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace gantry::sys {
namespace {

// What the reader sends before the bytes: how it ended.
struct ReadHeader {
  enum Kind : int { Done, ForkFailed, OpenFailed, ReadFailed };
  int kind = Done;
  int error = 0;
};

// Prepared before the fork: the reader may be forked from a process with threads, so it may make
// system calls only.
struct ReaderJob {
  int answer;
  int file;                   // O_PATH
  std::array<char, 32> name;  // /proc/self/fd/N of the file
  unsigned max_descriptor;    // where close_range is missing
};

void send_header(const ReaderJob& job, ReadHeader::Kind kind, int error) {
  const ReadHeader header{.kind = kind, .error = error};
  if (::write(job.answer, &header, sizeof header) < 0) return;  // the caller gave up
}

void close_descriptors(const ReaderJob& job, unsigned first, unsigned last) {
  if (first > last) return;
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, first, last, 0U) == 0) return;
#endif
  for (unsigned fd = first; fd <= std::min(last, job.max_descriptor); ++fd)
    ::close(static_cast<int>(fd));
}

// A reader that hangs must not keep a lock or the other end of a pipe.
void keep_own_descriptors(const ReaderJob& job) {
  const auto low = static_cast<unsigned>(std::min(job.answer, job.file));
  const auto high = static_cast<unsigned>(std::max(job.answer, job.file));
  if (low > 0) close_descriptors(job, 0, low - 1);
  close_descriptors(job, low + 1, high - 1);
  close_descriptors(job, high + 1, ~0U);
}

[[noreturn]] void run_reader(const ReaderJob& job) {
  ::setsid();
  keep_own_descriptors(job);
  const int fd = ::open(job.name.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    send_header(job, ReadHeader::OpenFailed, errno);
    ::_exit(1);
  }
  std::array<char, kMaxKernelRead> bytes{};
  const auto got = ::read(fd, bytes.data(), bytes.size());
  if (got < 0) {
    send_header(job, ReadHeader::ReadFailed, errno);
    ::_exit(1);
  }
  send_header(job, ReadHeader::Done, 0);
  ::_exit(::write(job.answer, bytes.data(), static_cast<std::size_t>(got)) == got ? 0 : 1);
}

// A process in between starts the reader and exits, so that init collects the reader.
Status start_reader(const ReaderJob& job) {
  const pid_t between = ::_Fork();
  if (between < 0) return Error::sys(errno, "fork");
  if (between == 0) {
    const pid_t reader = ::_Fork();
    if (reader == 0) run_reader(job);
    if (reader < 0) send_header(job, ReadHeader::ForkFailed, errno);
    ::_exit(0);
  }
  while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {};
}

// All that comes through the pipe until the reader ends.
Result<std::string> collect_answer(int pipe, Clock::time_point until) {
  std::string bytes;
  std::array<char, kMaxKernelRead> buffer{};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd wait{.fd = pipe, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::clamp<long long>(left, 0, 1 << 30)));
    if (ready < 0 && errno != EINTR) return Error::sys(errno, "poll");
    if (ready == 0 && left <= 0) return Error(Errc::Timeout, "no answer in time");
    if (ready <= 0) continue;
    const auto got = ::read(pipe, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::sys(errno, "read from the reading process");
    if (got == 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

Result<std::string> decode_answer(std::string bytes, std::string_view shown) {
  ReadHeader header;
  if (bytes.size() < sizeof header)
    return Error(Errc::Internal, fmt::format("read {}: the reading process was killed", shown));
  std::memcpy(&header, bytes.data(), sizeof header);
  switch (header.kind) {
    case ReadHeader::Done: return bytes.substr(sizeof header);
    case ReadHeader::ForkFailed: return Error::sys(header.error, "fork");
    case ReadHeader::OpenFailed: return Error::sys(header.error, fmt::format("open {}", shown));
    default: return Error::sys(header.error, fmt::format("read {}", shown));
  }
}

unsigned highest_descriptor() {
  rlimit limit{};
  constexpr rlim_t kMost = 1U << 20;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMost;
  return static_cast<unsigned>(std::min(limit.rlim_cur, kMost));
}

// A file of a simulated machine lies on a disk or in memory: no device's lock is behind it, and two
// processes for each read would be most of the work of a test.
bool is_plain_file(int fd) {
  struct stat found {};
  struct statfs system {};
  return ::fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && ::fstatfs(fd, &system) == 0 &&
         system.f_type != SYSFS_MAGIC && system.f_type != PROC_SUPER_MAGIC;
}

Result<std::string> read_here(const ReaderJob& job, std::string_view shown) {
  const UniqueFd fd(::open(job.name.data(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Error::sys(errno, fmt::format("open {}", shown));
  std::string bytes(kMaxKernelRead, '\0');
  const auto got = ::read(fd.get(), bytes.data(), bytes.size());
  if (got < 0) return Error::sys(errno, fmt::format("read {}", shown));
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

}  // namespace

Result<std::string> read_with_deadline(const Host& host, std::string_view path,
                                       std::chrono::milliseconds deadline) {
  const auto shown = host.outside(path);
  const auto until = Clock::now() + deadline;
  GANTRY_TRY(const auto file, host.open(path, O_PATH));  // looks the file up, opens nothing
  ReaderJob job{.answer = -1, .file = file.get(), .name = {}, .max_descriptor = 0};
  fmt::format_to_n(job.name.data(), job.name.size() - 1, "/proc/self/fd/{}", file.get());
  if (is_plain_file(file.get())) return read_here(job, shown);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error::sys(errno, "pipe");
  const UniqueFd mine(ends[0]);
  UniqueFd theirs(ends[1]);
  job.answer = theirs.get();
  job.max_descriptor = highest_descriptor();
  GANTRY_CHECK(start_reader(job));
  theirs.reset();
  auto answer = collect_answer(mine.get(), until);
  if (answer.ok()) return decode_answer(*std::move(answer), shown);
  if (answer.error().code() != Errc::Timeout) return answer;
  return Error(Errc::Timeout, fmt::format("the read of {} did not return within {} ms: the kernel "
                                          "holds the lock of the device",
                                          shown, deadline.count()));
}

}  // namespace gantry::sys
