// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/file_bytes_internal.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <span>

namespace gantry::driver_package {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

// 0 at the end of the file.
Result<std::size_t> read_at(int fd, std::span<char> buffer, std::uint64_t offset,
                            std::string_view shown) {
  while (true) {
    const auto got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return Error::sys(errno, fmt::format("read {}", shown));
  }
}

}  // namespace

Result<std::string> read_prefix(int fd, std::size_t limit, std::string_view shown) {
  std::string text(limit, '\0');
  std::size_t size = 0;
  while (size < limit) {
    GANTRY_TRY(const auto got, read_at(fd, std::span(text).subspan(size), size, shown));
    if (got == 0) break;
    size += got;
  }
  text.resize(size);
  return text;
}

Status for_each_piece(int fd, std::string_view shown,
                      const std::function<void(std::string_view)>& piece) {
  std::string buffer(kPiece, '\0');
  std::uint64_t offset = 0;
  while (true) {
    GANTRY_TRY(const auto got, read_at(fd, buffer, offset, shown));
    if (got == 0) return {};
    piece(std::string_view(buffer).substr(0, got));
    offset += got;
  }
}

}  // namespace gantry::driver_package
