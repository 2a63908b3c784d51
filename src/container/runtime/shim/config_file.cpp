// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/shim/config_file.hpp"

#include "base/sys/unique_fd.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <climits>

namespace gantry::runtime {
namespace {

constexpr const char* kLabel = "security.selinux";

Result<std::string> real_path(const std::string& path) {
  std::array<char, PATH_MAX> buffer{};
  if (::realpath(path.c_str(), buffer.data()) == nullptr) return Error::sys(errno, path);
  return std::string(buffer.data());
}

Result<std::string> read_all(int fd, std::size_t size, const std::string& path) {
  std::string text(size + 1, '\0');  // one byte more detects a file that grew
  std::size_t filled = 0;
  while (filled < text.size()) {
    const auto got = ::read(fd, text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::sys(errno, fmt::format("read {}", path));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  if (filled > size) return Error(Errc::Busy, fmt::format("{} changed while it was read", path));
  text.resize(filled);
  return text;
}

std::string label_of(int fd) {
  std::array<char, 256> label{};
  const auto length = ::fgetxattr(fd, kLabel, label.data(), label.size());
  return length > 0 ? std::string(label.data(), static_cast<std::size_t>(length)) : std::string();
}

}  // namespace

Result<ConfigFile> ConfigFile::read(const std::string& path) {
  GANTRY_TRY(auto real, real_path(path));
  const sys::UniqueFd fd(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return Error::sys(errno, fmt::format("open {}", real));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return Error::sys(errno, fmt::format("stat {}", real));
  if (!S_ISREG(info.st_mode)) {
    return Error(Errc::Invalid, fmt::format("{} is not a regular file", real));
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size > json::kSizeLimit) {
    return Error(Errc::Corrupt, fmt::format("{} is too large: {} bytes", real, size));
  }
  GANTRY_TRY(auto text, read_all(fd.get(), size, real));
  GANTRY_TRY(auto document, json::Document::parse(std::move(text), json::Encoding::Any).in(real));
  ConfigFile file(std::move(real), std::move(document));
  file.mode_ = info.st_mode & 07777U;
  file.uid_ = info.st_uid;
  file.gid_ = info.st_gid;
  file.label_ = label_of(fd.get());
  return file;
}

Status ConfigFile::fill(int fd, const std::string& text) const {
  std::size_t done = 0;
  while (done < text.size()) {
    const auto wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return Error::sys(errno, fmt::format("write a temporary file for {}", path_));
    done += static_cast<std::size_t>(wrote);
  }
  // Sets the owner before the mode: changing the owner clears the set-id bits.
  if ((uid_ != ::geteuid() || gid_ != ::getegid()) && ::fchown(fd, uid_, gid_) != 0) {
    return Error::sys(errno, fmt::format("chown a temporary file for {}", path_));
  }
  if (::fchmod(fd, mode_) != 0)
    return Error::sys(errno, fmt::format("chmod a temporary file for {}", path_));
  if (!label_.empty() && ::fsetxattr(fd, kLabel, label_.data(), label_.size(), 0) != 0 &&
      errno != ENOTSUP && errno != EPERM) {
    return Error::sys(errno, fmt::format("label a temporary file for {}", path_));
  }
  return {};
}

Status ConfigFile::replace(const std::string& text) const {
  if (text == document_.text()) return {};
  std::string temporary = path_ + ".gantry-XXXXXX";
  const sys::UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return Error::sys(errno, fmt::format("create {}", temporary));
  auto status = fill(fd.get(), text);
  if (status.ok() && ::rename(temporary.c_str(), path_.c_str()) != 0) {
    status = Error::sys(errno, fmt::format("rename {} to {}", temporary, path_));
  }
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

}  // namespace gantry::runtime
