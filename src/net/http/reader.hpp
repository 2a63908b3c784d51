// SPDX-License-Identifier: Apache-2.0
// Takes an HTTP/1.1 response apart as it arrives, in pieces of any size. Bounded: head, chunk sizes
// and body have limits, and anything that is not HTTP is Corrupt.
#pragma once

#include "base/core/result.hpp"
#include "net/http/message.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::http {

inline constexpr std::size_t kHeadLimit = std::size_t{64} << 10;
// As much as json::Document takes. The agent's container may have 128 MiB.
inline constexpr std::size_t kBodyLimit = std::size_t{8} << 20;
Error too_large(std::uint64_t limit = kBodyLimit);

class ResponseReader {
 public:
  enum class Body : std::uint8_t { Expected, None };  // None: the answer to HEAD
  // `length_limit`: of a body or a chunk whose length is announced. Of what the caller leaves in
  // `body` between two calls, kBodyLimit is the limit in any case.
  explicit ResponseReader(Body body = Body::Expected, std::uint64_t length_limit = kBodyLimit)
      : body_(body), length_limit_(length_limit) {}

  // Appends what belongs to the body. Bytes after the end of the response are Corrupt: there is
  // only one request.
  Status feed(std::string_view bytes, std::string& body);

  // The peer closed: fine where that is how the body ends, Corrupt in the middle of it.
  Status end();

  bool head_done() const { return state_ != State::Head; }
  bool done() const { return state_ == State::Done; }
  bool keeps_alive() const { return keeps_alive_; }
  int status() const { return status_; }
  const Headers& headers() const { return headers_; }

 private:
  enum class State : std::uint8_t {
    Head,
    Counted,
    ChunkSize,
    Chunk,
    ChunkEnd,
    Trailer,
    Open,
    Done
  };

  Status take_head(std::string_view head);
  Status choose_body();
  Status take_line(std::string_view line);
  Status chunk_size(std::string_view line);
  Status take_body(std::string_view& bytes, std::string& body);

  Body body_;
  std::uint64_t length_limit_;
  State state_ = State::Head;
  std::string pending_;     // of the head or of a line
  std::uint64_t left_ = 0;  // of the counted body or of the chunk
  int status_ = 0;
  bool keeps_alive_ = true;
  Headers headers_;
};

// "Name: value" lines up to the empty one, without the first line. Corrupt if a line has another
// form.
Result<Headers> parse_headers(std::string_view lines);

}  // namespace gantry::http
