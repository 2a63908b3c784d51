// SPDX-License-Identifier: Apache-2.0
#include "container/image/byte_stream.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gantry::image {

ByteStream::ByteStream(Source source) : source_(std::move(source)), buffer_(kBuffer) {}

Result<std::string_view> ByteStream::peek(std::size_t count) {
  GANTRY_ASSERT(count <= kBuffer);
  while (end_ - begin_ < count && !ended_) {
    if (begin_ > 0) {
      std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
                buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
      end_ -= begin_;
      begin_ = 0;
    }
    GANTRY_TRY(const auto got, source_(std::span(buffer_).subspan(end_)));
    ended_ = got == 0;
    end_ += got;
  }
  return buffered().substr(0, count);
}

Result<std::string_view> ByteStream::at_hand() {
  GANTRY_CHECK(peek(1));
  return buffered();
}

void ByteStream::consume(std::size_t count) {
  GANTRY_ASSERT(count <= end_ - begin_);
  begin_ += count;
}

Result<std::size_t> ByteStream::read(std::span<char> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    GANTRY_TRY(const auto bytes, at_hand());
    if (bytes.empty()) break;
    const auto count = std::min(bytes.size(), to.size() - done);
    std::memcpy(to.data() + done, bytes.data(), count);
    consume(count);
    done += count;
  }
  return done;
}

Result<std::string> ByteStream::read_all(std::size_t limit) {
  std::string text;
  while (true) {
    GANTRY_TRY(const auto bytes, at_hand());
    if (bytes.empty()) return text;
    if (bytes.size() > limit - text.size())
      return Error(Errc::TooLarge, fmt::format("it has more than {} bytes", limit));
    text += bytes;
    consume(bytes.size());
  }
}

Status ByteStream::skip(std::uint64_t count) {
  while (count > 0) {
    GANTRY_TRY(const auto bytes, at_hand());
    if (bytes.empty()) return Error(Errc::Corrupt, "it ends in the middle of a file");
    const auto part = std::min<std::uint64_t>(count, bytes.size());
    consume(static_cast<std::size_t>(part));
    count -= part;
  }
  return {};
}

ByteStream file_stream(int fd) {
  return ByteStream([fd](std::span<char> to) -> Result<std::size_t> {
    while (true) {
      const auto got = ::read(fd, to.data(), to.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) return Error::sys(errno, "read");
    }
  });
}

Compression compression_of(std::string_view start) {
  using namespace std::string_view_literals;
  if (start.starts_with("\x1f\x8b"sv)) return Compression::Gzip;
  if (start.starts_with("\x28\xb5\x2f\xfd"sv)) return Compression::Zstd;
  if (start.starts_with("BZh"sv) || start.starts_with("\xfd"
                                                      "7zXZ"sv))
    return Compression::Other;
  return Compression::None;
}

}  // namespace gantry::image
