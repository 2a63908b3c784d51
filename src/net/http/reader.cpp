// SPDX-License-Identifier: Apache-2.0
#include "net/http/reader.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace gantry::http {
namespace {

constexpr std::size_t kHeaderLimit = 200;
constexpr std::size_t kLineLimit = 4096;

Error corrupt(std::string_view what) {
  return {Errc::Corrupt, fmt::format("the answer is not HTTP: {}", what)};
}

std::string_view without_return(std::string_view line) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// A body grows by powers of two and never beyond the limit, so that it takes at most one and a half
// times the limit while it is copied.
Status append(std::string& body, std::string_view bytes) {
  const auto size = body.size() + bytes.size();
  if (size > kBodyLimit) return too_large();
  if (size > body.capacity()) body.reserve(std::bit_ceil(size));
  body.append(bytes);
  return {};
}

}  // namespace

Error too_large(std::uint64_t limit) {
  return {Errc::TooLarge, fmt::format("an answer of more than {}", human_bytes(limit))};
}

Result<Headers> parse_headers(std::string_view text) {
  Headers headers;
  for (auto line : lines(text)) {
    line = without_return(line);
    if (line.empty()) break;
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return corrupt("a header without a name");
    if (headers.size() == kHeaderLimit) return corrupt("more than 200 headers");
    headers.push_back(
        {std::string(trim(line.substr(0, colon))), std::string(trim(line.substr(colon + 1)))});
  }
  return headers;
}

Status ResponseReader::take_head(std::string_view head) {
  const auto first = without_return(head.substr(0, head.find('\n')));
  const auto words = split(first, ' ');
  if (words.size() < 2 || !words[0].starts_with("HTTP/1.")) return corrupt("no status line");
  const auto status = parse_u64(words[1]);
  if (!status || *status < 100 || *status > 599) return corrupt("no status");
  status_ = static_cast<int>(*status);
  keeps_alive_ = words[0] == "HTTP/1.1";
  GANTRY_TRY(headers_, parse_headers(head.substr(std::min(head.find('\n') + 1, head.size()))));
  if (status_ == 101) {  // Switching Protocols: what follows is not HTTP
    keeps_alive_ = false;
    state_ = State::Done;
    return {};
  }
  if (status_ / 100 == 1) {  // 100 Continue and its like: the real one follows
    headers_.clear();
    state_ = State::Head;
    return {};
  }
  return choose_body();
}

Status ResponseReader::choose_body() {
  if (const auto* connection = find(headers_, "Connection");
      connection != nullptr && to_lower(*connection) == "close")
    keeps_alive_ = false;
  const auto* coding = find(headers_, "Transfer-Encoding");
  const auto* length = find(headers_, "Content-Length");
  if (body_ == Body::None || status_ == 204 || status_ == 304) {
    state_ = State::Done;
  } else if (coding != nullptr) {
    if (to_lower(*coding) != "chunked") return corrupt("an unknown transfer coding");
    state_ = State::ChunkSize;
  } else if (length != nullptr) {
    const auto count = parse_u64(*length);
    if (!count) return corrupt("a body of unlikely length");
    if (*count > length_limit_) return too_large(length_limit_);
    left_ = *count;
    state_ = left_ == 0 ? State::Done : State::Counted;
  } else {
    keeps_alive_ = false;
    state_ = State::Open;
  }
  return {};
}

Status ResponseReader::chunk_size(std::string_view line) {
  const auto size = parse_u64(trim(line.substr(0, line.find(';'))), 16);
  if (!size) return corrupt("a chunk of unlikely size");
  if (*size > length_limit_) return too_large(length_limit_);
  left_ = *size;
  state_ = left_ == 0 ? State::Trailer : State::Chunk;
  return {};
}

Status ResponseReader::take_line(std::string_view line) {
  switch (state_) {
    case State::ChunkSize: return chunk_size(line);
    case State::ChunkEnd:
      if (!line.empty()) return corrupt("a chunk longer than it says");
      state_ = State::ChunkSize;
      return {};
    default:  // Trailer: not used
      if (line.empty()) state_ = State::Done;
      return {};
  }
}

Status ResponseReader::take_body(std::string_view& bytes, std::string& body) {
  if (state_ == State::Open) return append(body, std::exchange(bytes, {}));
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  GANTRY_CHECK(append(body, bytes.substr(0, count)));
  bytes.remove_prefix(count);
  left_ -= count;
  if (left_ == 0) state_ = state_ == State::Chunk ? State::ChunkEnd : State::Done;
  return {};
}

Status ResponseReader::feed(std::string_view bytes, std::string& body) {
  while (!bytes.empty()) {
    if (state_ == State::Done) return corrupt("more bytes than were announced");
    if (state_ == State::Counted || state_ == State::Chunk || state_ == State::Open) {
      GANTRY_CHECK(take_body(bytes, body));
      continue;
    }
    const auto end = bytes.find('\n');
    const auto count = end == std::string_view::npos ? bytes.size() : end + 1;
    pending_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
    if (pending_.size() > (state_ == State::Head ? kHeadLimit : kLineLimit))
      return corrupt("a line without end");
    if (end == std::string_view::npos) continue;
    if (state_ == State::Head) {
      if (!pending_.ends_with("\n\r\n") && !pending_.ends_with("\n\n")) continue;
      const auto head = std::exchange(pending_, {});
      GANTRY_CHECK(take_head(head));
    } else {
      const auto line = std::exchange(pending_, {});
      GANTRY_CHECK(take_line(trim(line)));
    }
  }
  return {};
}

Status ResponseReader::end() {
  if (state_ == State::Open) state_ = State::Done;
  if (state_ != State::Done) return corrupt("it ends in the middle");
  return {};
}

}  // namespace gantry::http
