// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/log_file.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace gantry::daemon {
namespace {

constexpr std::uint64_t kMaxSummaryBytes = 2'000;

std::uint64_t size_of(const struct stat& about) {
  return static_cast<std::uint64_t>(about.st_size);
}

void put_aside(const std::string& path) {
  ::rename(path.c_str(), (path + ".1").c_str());
}

sys::UniqueFd open_to_add(const std::string& path) {
  return sys::UniqueFd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
}

}  // namespace

Result<sys::UniqueFd> open_log(const std::string& path, std::uint64_t most) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  struct stat about {};
  if (::lstat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && size_of(about) >= most)
    put_aside(path);
  auto file = open_to_add(path);
  if (!file.valid()) return Error::sys(errno, "open").in(path);
  return file;
}

void rotate_if_large(int fd, const std::string& path, std::uint64_t most) {
  struct stat ours {};
  struct stat named {};
  if (::fstat(fd, &ours) != 0 || !S_ISREG(ours.st_mode) || size_of(ours) < most) return;
  if (::lstat(path.c_str(), &named) != 0 || named.st_ino != ours.st_ino ||
      named.st_dev != ours.st_dev)
    return;
  put_aside(path);
  const auto file = open_to_add(path);
  if (file.valid()) ::dup2(file.get(), fd);
}

std::string log_tail(const std::string& path, std::uint64_t begin) {
  const sys::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat about {};
  if (!file.valid() || ::fstat(file.get(), &about) != 0) return "";
  const auto size = size_of(about);
  if (begin > size) begin = 0;  // another file has replaced it since
  const auto from = std::max(begin, size - std::min(size, kMaxSummaryBytes));
  std::string text(kMaxSummaryBytes, '\0');
  const auto got = ::pread(file.get(), text.data(), text.size(), static_cast<off_t>(from));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return printable(trim(text));
}

}  // namespace gantry::daemon
