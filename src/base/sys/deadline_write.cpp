// SPDX-License-Identifier: Apache-2.0
#include "base/sys/deadline_write.hpp"

#include "base/sys/deadline_call.hpp"
#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <string>

namespace gantry::sys {
namespace {

enum WriteStep : int { Open, Write, Short, Done };

// `name` is /proc/self/fd/N of the file. One write: sysfs takes each write as a value of its own.
CallOutcome open_and_write(const char* name, std::string_view text) {
  const int fd = ::open(name, O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0) return {Open, errno};
  const auto wrote = ::write(fd, text.data(), text.size());
  if (wrote < 0) return {Write, errno};
  if (static_cast<std::size_t>(wrote) != text.size()) return {Short, static_cast<int>(wrote)};
  return {Done, 0};
}

}  // namespace

Status write_with_deadline(const Host& host, std::string_view path, std::string_view text,
                           std::chrono::milliseconds deadline) {
  const auto shown = host.outside(path);
  if (text.size() > kMaxKernelWrite)
    return Error(Errc::Invalid,
                 fmt::format("write {}: more than {} bytes", shown, kMaxKernelWrite));
  GANTRY_TRY(const auto file, host.open(path, O_PATH));  // looks the file up, opens nothing
  std::array<char, 32> name{};
  fmt::format_to_n(name.data(), name.size() - 1, "/proc/self/fd/{}", file.get());
  GANTRY_TRY(const auto outcome,
             call_with_deadline([&](int) { return open_and_write(name.data(), text); }, file.get(),
                                deadline, fmt::format("the write to {}", shown)));
  switch (outcome.step) {
    case Done: return {};
    case Open: return Error::sys(outcome.value, fmt::format("open {}", shown));
    case Write: return Error::sys(outcome.value, fmt::format("write {}", shown));
    default:
      return Error(Errc::Internal,
                   fmt::format("write {}: the kernel took only {} bytes", shown, outcome.value));
  }
}

}  // namespace gantry::sys
