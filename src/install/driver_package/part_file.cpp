// SPDX-License-Identifier: Apache-2.0
#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "base/sys/trusted.hpp"
#include "install/driver_package/checksum.hpp"
#include "install/driver_package/file_bytes_internal.hpp"
#include "install/driver_package/part_file_internal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

namespace gantry::driver_package {
namespace {

constexpr std::size_t kInfoLimit = 16384;

std::string part_name(const std::string& name) {
  return name + ".part";
}
std::string info_name(const std::string& name) {
  return name + ".part.info";
}

std::string source_name(const std::string& name) {
  return name + ".source";
}

std::string source_text(std::string_view url, std::string_view sha256) {
  return fmt::format("{}\n{}\n", sha256, printable(url));
}

Error failed(std::string_view call, std::string_view shown) {
  auto error = Error::sys(errno, fmt::format("{} {}", call, shown));
  if (error.sys_errno() != ENOSPC && error.sys_errno() != EDQUOT) return error;
  return std::move(error).advise(
      "make room on that file system; the download continues where it "
      "stopped");
}

// Opens NAME.part and locks it. Another process may have renamed it in between; then the lock is on
// a file that is not a part any more.
Result<sys::UniqueFd> open_locked(int directory, const std::string& name, std::string_view shown) {
  for (int tries = 0; tries < 3; ++tries) {
    sys::UniqueFd file(::openat(directory, name.c_str(),
                                O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (!file.valid()) return failed("open", shown);
    GANTRY_TRY(const auto info, sys::file_info(file.get(), shown));
    if (info.kind != sys::FileKind::Regular)
      return Error(Errc::Invalid, fmt::format("{} is not a file", shown)).advise("remove it");
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return failed("lock", shown);
      return Error(Errc::Busy, fmt::format("another process downloads to {}", shown))
          .advise("wait until it has ended");
    }
    struct stat mine {};
    struct stat named {};
    if (::fstat(file.get(), &mine) == 0 &&
        ::fstatat(directory, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        mine.st_dev == named.st_dev && mine.st_ino == named.st_ino)
      return file;
  }
  return Error(Errc::Busy, fmt::format("other processes rename {}", shown));
}

Status remove_name(int directory, const std::string& name) {
  if (::unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return failed("remove", name);
}

}  // namespace

bool is_from(const sys::Host& host, const std::string& path, std::string_view url,
             std::string_view sha256) {
  const auto text = host.read(source_name(path), kInfoLimit);
  return text.ok() && *text == source_text(url, sha256);
}

Result<sys::UniqueFd> make_directories(const sys::Host& host, const std::string& path) {
  if (!path.starts_with('/'))
    return Error(Errc::Invalid, fmt::format("{} is not an absolute path", path));
  std::string done = "/";
  for (const auto part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return Error(Errc::Invalid, fmt::format("{} contains `..`", path));
    const auto next = join_path(done, part);
    if (!host.exists(next)) {
      GANTRY_TRY(const auto above, host.open(done, O_RDONLY | O_DIRECTORY));
      if (::mkdirat(above.get(), std::string(part).c_str(), 0755) != 0 && errno != EEXIST)
        return failed("create", next);
    }
    done = next;
  }
  return host.open(done, O_RDONLY | O_DIRECTORY);
}

PartFile::PartFile(sys::UniqueFd directory, sys::UniqueFd file, std::string name, std::string shown)
    : directory_(std::move(directory)),
      file_(std::move(file)),
      name_(std::move(name)),
      shown_(std::move(shown)) {}

Result<PartFile> PartFile::open(const sys::Host& host, const std::string& directory,
                                const std::string& name) {
  GANTRY_TRY(auto folder, make_directories(host, directory));
  GANTRY_TRY(const auto owner, host.info("/"));
  GANTRY_TRY(const auto info, sys::file_info(folder.get(), directory));
  GANTRY_CHECK(sys::check_trusted(info.uid, info.mode, owner.uid, directory));
  const auto shown = join_path(directory, part_name(name));
  GANTRY_TRY(auto file, open_locked(folder.get(), part_name(name), shown));
  PartFile part(std::move(folder), std::move(file), name, shown);
  GANTRY_CHECK(part.read_state());
  return part;
}

Status PartFile::read_state() {
  GANTRY_TRY(const auto info, sys::file_info(file_.get(), shown_));
  size_ = info.size;
  const sys::UniqueFd file(::openat(directory_.get(), info_name(name_).c_str(),
                                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) return {};
  if (const auto text = sys::read_regular(file.get(), kInfoLimit, shown_); text.ok())
    info_ = parse_part_info(*text);
  return {};
}

// By rename: after a power failure there is the old one or the new one.
Status PartFile::replace(const std::string& name, std::string_view text) {
  const auto temporary = name + ".new";
  const sys::UniqueFd file(::openat(directory_.get(), temporary.c_str(),
                                    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return failed("open", temporary);
  GANTRY_CHECK(sys::write_all(file.get(), text, temporary));
  if (::fsync(file.get()) != 0 ||
      ::renameat(directory_.get(), temporary.c_str(), directory_.get(), name.c_str()) != 0)
    return failed("write", name);
  return {};
}

Status PartFile::set_info(PartInfo info) {
  if (info == info_) return {};
  GANTRY_CHECK(replace(info_name(name_), to_text(info)));
  info_ = std::move(info);
  return {};
}

Status PartFile::note_source(std::string_view sha256) {
  return replace(source_name(name_), source_text(info_.url, sha256));
}

Status PartFile::reserve(std::uint64_t total) {
  if (total <= size_) return {};
  const int done = ::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(total));
  if (done == 0 || (errno != ENOSPC && errno != EDQUOT)) return {};
  return failed(fmt::format("reserve {} for", human_bytes(total)), shown_);
}

Status PartFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto done = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failed("write", shown_);
    size_ += static_cast<std::uint64_t>(done);
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return {};
}

Status PartFile::clear() {
  if (::ftruncate(file_.get(), 0) != 0) return failed("truncate", shown_);
  size_ = 0;
  return {};
}

Result<std::string> PartFile::sha256() const {
  Sha256 digest;
  GANTRY_CHECK(
      for_each_piece(file_.get(), shown_, [&](std::string_view piece) { digest.add(piece); }));
  return digest.finish();
}

Status PartFile::publish() {
  if (::fchmod(file_.get(), 0644) != 0 || ::fsync(file_.get()) != 0) return failed("sync", shown_);
  if (::renameat(directory_.get(), part_name(name_).c_str(), directory_.get(), name_.c_str()) != 0)
    return failed("rename", shown_);
  GANTRY_CHECK(remove_name(directory_.get(), info_name(name_)));
  if (::fsync(directory_.get()) != 0) return failed("sync the directory of", shown_);
  return {};
}

Status PartFile::discard() {
  GANTRY_CHECK(remove_name(directory_.get(), info_name(name_)));
  return remove_name(directory_.get(), part_name(name_));
}

}  // namespace gantry::driver_package
