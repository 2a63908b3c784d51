// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/heartbeat.hpp"

#include "base/core/text.hpp"
#include "sharing/daemon/client.hpp"
#include "sharing/daemon/shared_pages.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>

namespace gantry::daemon {
namespace {

constexpr std::size_t kLifeSignBytes = 128;

}  // namespace

// Written at once and with a fixed width, so that no reader sees a part of it.
void write_heartbeat(int lock, const ProcessRef& self) {
  const auto text = fmt::format("{:<10} {:<20} {:<20}\n", self.pid, self.started, monotonic_ns());
  (void)!::pwrite(lock, text.data(), text.size(), 0);
}

void erase_heartbeat(int lock) {
  (void)!::ftruncate(lock, 0);
}

std::optional<Heartbeat> read_heartbeat(const sys::Host& host) {
  const sys::UniqueFd file(
      ::open(host.outside(kLockFile).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::array<char, kLifeSignBytes> bytes{};
  const auto got = file.valid() ? ::pread(file.get(), bytes.data(), bytes.size(), 0) : 0;
  if (got <= 0) return std::nullopt;
  std::vector<std::uint64_t> values;
  for (const auto word :
       split(std::string_view(bytes.data(), static_cast<std::size_t>(got)), ' ')) {
    if (const auto value = parse_u64(trim(word))) values.push_back(*value);
  }
  if (values.size() != 3 || values[0] == 0 || values[0] > INT32_MAX) return std::nullopt;
  return Heartbeat{.process = {static_cast<pid_t>(values[0]), values[1]},
                   .at = std::chrono::nanoseconds(values[2])};
}

std::string describe_hang(pid_t pid) {
  const sys::UniqueFd file(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> bytes{};
  const auto got = file.valid() ? ::read(file.get(), bytes.data(), bytes.size()) : 0;
  const std::string_view text(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const auto name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= text.size()) return "does not answer";
  const char state = text[name_end + 2];
  if (state == 'T' || state == 't') return "is stopped (SIGSTOP, or a debugger)";
  if (state == 'D') return "hangs in the kernel";
  return "hangs";
}

}  // namespace gantry::daemon
