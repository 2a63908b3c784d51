// SPDX-License-Identifier: Apache-2.0
#include "vm/vgpu/state.hpp"

#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace gantry::vgpu {
namespace {

constexpr std::size_t kStateLimit = std::size_t{4} << 20;

Result<std::optional<std::string>> read_optional(const sys::Host& host, std::string_view path) {
  auto text = host.read(path, kStateLimit);
  if (text.ok()) return std::optional(*std::move(text));
  if (text.error().code() == Errc::NotFound) return std::optional<std::string>();
  return std::move(text).error();
}

Error damaged(const sys::Host& host, std::string_view path, const Error& why) {
  if (why.code() == Errc::Unsupported) {
    return Error(Errc::Unsupported, fmt::format("{}: {}", host.outside(path), why.cause()))
        .advise("use that gantry or a later one; this one does not touch the file");
  }
  return Error(Errc::Corrupt, fmt::format("{}: {}", host.outside(path), why.cause()))
      .advise(fmt::format("look at it, then remove it: sudo rm {}",
                          sys::shell_word(host.outside(path))));
}

// Who holds a lock that we cannot get: /proc/locks names the process.
std::string holder_of(const sys::Host& host, int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return "";
  const auto text = host.read("/proc/locks", 1U << 20U).value_or("");
  const auto inode = fmt::format(":{}", info.st_ino);
  for (const auto line : lines(text)) {
    if (!contains(line, "FLOCK") || !contains(line, inode + " ")) continue;
    std::vector<std::string_view> words;
    for (const auto word : split(line, ' ')) {
      if (!word.empty()) words.push_back(word);
    }
    if (words.size() > 4) return std::string(words[4]);
  }
  return "";
}

}  // namespace

Intent Intent::with(const std::vector<model::PciAddress>& changed,
                    const std::vector<VgpuSpec>& specs) const {
  Intent next;
  for (const auto& vgpu : vgpus) {
    if (std::find(changed.begin(), changed.end(), vgpu.gpu) == changed.end())
      next.vgpus.push_back(vgpu);
  }
  next.vgpus.insert(next.vgpus.end(), specs.begin(), specs.end());
  return next;
}

std::vector<model::PciAddress> Intent::gpus() const {
  std::vector<model::PciAddress> found;
  for (const auto& vgpu : vgpus) {
    if (std::find(found.begin(), found.end(), vgpu.gpu) == found.end()) found.push_back(vgpu.gpu);
  }
  return found;
}

Result<Intent> read_intent(const sys::Host& host) {
  GANTRY_TRY(const auto text, read_optional(host, kIntentPath));
  if (!text) return Intent{};
  auto intent = parse_intent(*text);
  if (!intent.ok()) return damaged(host, kIntentPath, intent.error());
  return intent;
}

Result<std::optional<Journal>> read_journal(const sys::Host& host) {
  GANTRY_TRY(const auto text, read_optional(host, kJournalPath));
  if (!text) return std::optional<Journal>();
  auto journal = parse_journal(*text);
  if (!journal.ok()) return damaged(host, kJournalPath, journal.error());
  return std::optional(*std::move(journal));
}

KnownTypes read_known_types(const sys::Host& host) {
  const auto text = read_optional(host, kTypesPath);
  if (!text.ok() || !*text) return {};
  return parse_known_types(**text).value_or({});
}

Result<ChangeLock> ChangeLock::take(const sys::Host& host) {
  std::error_code failed;
  std::filesystem::create_directories(host.outside(kStateDirectory), failed);
  if (failed) return Error::sys(failed.value(), "create " + host.outside(kStateDirectory));
  const auto path = host.outside(kLockPath);
  sys::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0) return Error::sys(errno, "open " + path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return ChangeLock(std::move(fd));
  if (errno != EWOULDBLOCK) return Error::sys(errno, fmt::format("lock {}", path));
  const auto pid = holder_of(host, fd.get());
  return Error(Errc::Busy, fmt::format("another gantry{} is changing the vGPUs of this machine",
                                       pid.empty() ? "" : fmt::format(" (process {})", pid)))
      .advise("try again when it is done");
}

}  // namespace gantry::vgpu
