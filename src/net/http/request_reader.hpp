// SPDX-License-Identifier: Apache-2.0
// Takes HTTP/1.1 requests with bodies apart as they arrive, in pieces of any size. Bounded, and
// strict where two readers could understand two things: a body has one Content-Length or none.
#pragma once

#include "base/core/result.hpp"
#include "net/http/message.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::http {

// Reads a request's head, up to and including its empty line. Invalid if it is not HTTP/1.
Result<Request> parse_request_head(std::string_view head);

class RequestReader {
 public:
  struct Limits {
    std::size_t head = std::size_t{16} << 10;
    std::size_t body = std::size_t{16} << 20;
  };
  enum class State : std::uint8_t {
    Waiting,  // not a byte of a request
    Head,
    Body,
    Whole,  // take() it
    Bad     // refusal() says why; nothing more can be read from this connection
  };

  explicit RequestReader(Limits limits) : limits_(limits) {}

  // Takes what belongs to this request from the front of `in`.
  State feed(std::string& in);
  State state() const { return state_; }

  std::size_t body_size() const { return body_size_; }     // as announced; from Body on
  bool wants_continue() const { return wants_continue_; }  // the body comes when it is told to
  bool keeps_alive() const { return keeps_alive_; }
  bool is_http_1_1() const { return is_http_1_1_; }
  const Response& refusal() const { return refusal_; }

  Request take();  // and waits for the next

 private:
  State take_head(std::string_view head);
  State refuse(int status, std::string_view text);

  Limits limits_;
  State state_ = State::Waiting;
  std::size_t searched_ = 0;  // of the head, without an end in it
  std::size_t body_size_ = 0;
  bool wants_continue_ = false;
  bool keeps_alive_ = true;
  bool is_http_1_1_ = true;
  Request request_;
  Response refusal_;
};

}  // namespace gantry::http
