// SPDX-License-Identifier: Apache-2.0
#include "container/image/byte_stream.hpp"

#include <zlib.h>

#include <fmt/format.h>

#include <memory>

namespace gantry::image {
namespace {

constexpr int kGzipOnly = 15 + 16;  // the largest window, and gzip's header instead of zlib's

class Gunzip {
 public:
  Gunzip(ByteStream& packed, const ReadBudget& budget) : packed_(packed), budget_(budget) {
    GANTRY_ASSERT(inflateInit2(&zlib_, kGzipOnly) == Z_OK);
  }
  ~Gunzip() { inflateEnd(&zlib_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  Result<std::size_t> read(std::span<char> to) {
    zlib_.next_out = reinterpret_cast<Bytef*>(to.data());
    zlib_.avail_out = static_cast<uInt>(to.size());
    while (zlib_.avail_out == to.size() && !ended_) GANTRY_CHECK(step());
    const auto got = to.size() - zlib_.avail_out;
    unpacked_ += got;
    GANTRY_CHECK(budget_.check_ratio(packed_bytes_, unpacked_));
    return got;
  }

 private:
  Status step() {
    GANTRY_TRY(const auto bytes, packed_.at_hand());
    if (bytes.empty()) return Error(Errc::Corrupt, "what gzip packed is not complete");
    // zlib does not write to its input, but its interface lacks the const.
    zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    zlib_.avail_in = static_cast<uInt>(bytes.size());
    const auto answer = inflate(&zlib_, Z_NO_FLUSH);
    const auto used = bytes.size() - zlib_.avail_in;
    packed_.consume(used);
    packed_bytes_ += used;
    if (answer == Z_STREAM_END) return next_member();
    if (answer == Z_OK || (answer == Z_BUF_ERROR && used > 0)) return {};
    return Error(Errc::Corrupt, fmt::format("what gzip packed is damaged: {}",
                                            zlib_.msg == nullptr ? "no progress" : zlib_.msg));
  }

  // Another member may follow; anything else at the end is padding, which gunzip ignores, too.
  Status next_member() {
    GANTRY_TRY(const auto start, packed_.peek(2));
    ended_ = compression_of(start) != Compression::Gzip;
    if (!ended_) GANTRY_ASSERT(inflateReset(&zlib_) == Z_OK);
    return {};
  }

  ByteStream& packed_;
  const ReadBudget& budget_;
  z_stream zlib_{};
  std::uint64_t packed_bytes_ = 0;
  std::uint64_t unpacked_ = 0;
  bool ended_ = false;
};

}  // namespace

ByteStream gunzip_stream(ByteStream& packed, const ReadBudget& budget) {
  auto gunzip = std::make_shared<Gunzip>(packed, budget);
  return ByteStream([gunzip](std::span<char> to) { return gunzip->read(to); });
}

}  // namespace gantry::image
