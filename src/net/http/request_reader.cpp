// SPDX-License-Identifier: Apache-2.0
#include "net/http/request_reader.hpp"

#include "base/core/text.hpp"
#include "net/http/reader.hpp"

#include <fmt/format.h>

#include <optional>

namespace gantry::http {
namespace {

constexpr std::string_view kEnd = "\r\n\r\n";

// How often a header is there, and its only value.
struct HeaderCount {
  int times = 0;
  std::string value;
};

HeaderCount count_header(const Headers& headers, std::string_view name) {
  HeaderCount found;
  for (const auto& header : headers) {
    if (to_lower(header.name) != to_lower(name)) continue;
    ++found.times;
    found.value = header.value;
  }
  return found;
}

}  // namespace

Result<Request> parse_request_head(std::string_view head) {
  const auto end = head.find('\n');
  const auto words = split(trim(head.substr(0, end)), ' ');
  if (words.size() != 3 || !words[2].starts_with("HTTP/1.") || !words[1].starts_with('/'))
    return Error(Errc::Invalid, "not an HTTP/1 request");
  Request request{.method = std::string(words[0]), .target = std::string(words[1])};
  if (end != std::string_view::npos) {
    GANTRY_TRY(request.headers, parse_headers(head.substr(end + 1)));
  }
  return request;
}

RequestReader::State RequestReader::refuse(int status, std::string_view text) {
  refusal_ = plain_text(status, text);
  return state_ = State::Bad;
}

RequestReader::State RequestReader::take_head(std::string_view head) {
  auto request = parse_request_head(head);
  if (!request.ok()) return refuse(400, request.error().text());
  request_ = *std::move(request);
  const auto version = head.substr(0, head.find('\r'));
  const auto connection = to_lower(count_header(request_.headers, "Connection").value);
  is_http_1_1_ = version.ends_with("HTTP/1.1");
  keeps_alive_ = is_http_1_1_ && connection != "close";
  if (count_header(request_.headers, "Transfer-Encoding").times > 0)
    return refuse(411, "bodies are read by Content-Length here, not in chunks");
  const auto length = count_header(request_.headers, "Content-Length");
  const auto size = all_digits(length.value) ? parse_u64(length.value) : std::nullopt;
  if (length.times > 1 || (length.times == 1 && !size))
    return refuse(400, "not one Content-Length");
  body_size_ = 0;
  if (length.times == 1) {
    if (*size > limits_.body)
      return refuse(413, fmt::format("a body may have {} bytes here", limits_.body));
    body_size_ = static_cast<std::size_t>(*size);
  }
  const auto expect = count_header(request_.headers, "Expect");
  if (expect.times > 0 && to_lower(expect.value) != "100-continue")
    return refuse(417, "nothing but 100-continue can be expected");
  wants_continue_ = expect.times > 0 && body_size_ > 0;
  request_.body.clear();
  request_.body.reserve(body_size_);  // appending alone would take twice as much
  return state_ = State::Body;
}

RequestReader::State RequestReader::feed(std::string& in) {
  if (state_ == State::Waiting && !in.empty()) state_ = State::Head;
  if (state_ == State::Head) {
    const auto end = in.find(kEnd, searched_);
    if (end == std::string::npos || end + kEnd.size() > limits_.head) {
      if (in.size() > limits_.head)
        return refuse(431, fmt::format("a request's head may have {} bytes", limits_.head));
      searched_ = in.size() < kEnd.size() ? 0 : in.size() - (kEnd.size() - 1);
      return state_;
    }
    const auto head = in.substr(0, end + kEnd.size());
    in.erase(0, head.size());
    searched_ = 0;
    if (take_head(head) == State::Bad) return state_;
  }
  if (state_ == State::Body) {
    const auto count = std::min(in.size(), body_size_ - request_.body.size());
    request_.body.append(in, 0, count);
    in.erase(0, count);
    if (request_.body.size() == body_size_) state_ = State::Whole;
  }
  return state_;
}

Request RequestReader::take() {
  state_ = State::Waiting;
  wants_continue_ = false;
  return std::exchange(request_, {});
}

}  // namespace gantry::http
