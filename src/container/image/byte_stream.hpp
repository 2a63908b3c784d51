// SPDX-License-Identifier: Apache-2.0
// Bytes that are read once, from front to back: of a file or a pipe, of a member of an archive, or
// unpacked by gzip. Nothing is ever written to disk.
#pragma once

#include "base/core/result.hpp"
#include "container/image/read_budget.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::image {

class ByteStream {
 public:
  // Fills a part of the buffer and returns its size; 0 at the end.
  using Source = std::function<Result<std::size_t>(std::span<char>)>;
  explicit ByteStream(Source source);

  // The next bytes, without reading them; fewer than `count` only at the end. At most kBuffer.
  Result<std::string_view> peek(std::size_t count);
  // All bytes that are at hand, at least one; "" at the end. consume() reads some of them.
  Result<std::string_view> at_hand();
  void consume(std::size_t count);

  // Fewer than the buffer's size only at the end.
  Result<std::size_t> read(std::span<char> to);
  // TooLarge if there are more than `limit`.
  Result<std::string> read_all(std::size_t limit);
  // Corrupt if the stream ends before.
  Status skip(std::uint64_t count);

  static constexpr std::size_t kBuffer = std::size_t{64} << 10U;

 private:
  std::string_view buffered() const { return {buffer_.data() + begin_, end_ - begin_}; }

  Source source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool ended_ = false;
};

// Reads from an open descriptor, which must outlive the stream.
ByteStream file_stream(int fd);

// What gzip unpacks from `packed`, which must outlive the stream; all members of a file with
// several, as gunzip does. Corrupt for damage and for an end in the middle.
ByteStream gunzip_stream(ByteStream& packed, const ReadBudget& budget);

enum class Compression : std::uint8_t { None, Gzip, Zstd, Other };
// By the first bytes.
Compression compression_of(std::string_view start);

}  // namespace gantry::image
