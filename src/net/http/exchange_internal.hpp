// SPDX-License-Identifier: Apache-2.0
// One request and its answer, shared by the connection, which lives in the server's thread, and the
// handler, which may run anywhere and may outlive both.
#pragma once

#include "net/http/memory_internal.hpp"
#include "net/http/message.hpp"
#include "net/http/server.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace gantry::http {

class Exchange {
 public:
  struct Setting {
    std::weak_ptr<ServerCore> server;
    std::uint64_t connection = 0;
    std::shared_ptr<ClientMemory> memory;
    std::size_t stream_limit = 0;
    Part part = Part::Whole;
  };
  explicit Exchange(Setting setting);

  // ---- for handlers, from any thread
  bool answer(Response response);
  void start_stream(Response head);
  bool write(std::string_view bytes);
  void end_stream();
  void abandon();  // no handle is left
  bool gone() const;
  void on_gone(std::function<void()> callback);

  // ---- for the connection, in the server's thread
  struct Output {
    std::optional<Response> answer;  // all of it, or
    std::optional<Response> head;    // a stream's beginning
    std::string bytes;               // of the stream
    bool last = false;               // the stream ends after `bytes`
    bool overflow = false;           // the client reads too slowly
    MemoryHold hold;                 // for all that
  };
  Output take();
  void set_unsent(std::size_t bytes);  // taken, and not sent yet
  void detach();                       // the connection has no more to do with it

 private:
  enum class State : std::uint8_t { Open, Answered, Streaming, Ended, Overflow, Gone };
  void wake();  // has the connection call take()
  std::shared_ptr<ServerCore> server() const { return setting_.server.lock(); }

  const Setting setting_;
  mutable std::mutex mutex_;  // of what follows
  State state_ = State::Open;
  Output output_;
  std::size_t unsent_ = 0;
  bool woken_ = false;
  bool is_stream_ = false;
  std::function<void()> callback_;
};

// What Reply and Stream hold. Counted from the request until the last of them ends, whether the
// client is still there or not: handlers of clients that have gone take memory, too.
class ExchangeHandle {
 public:
  ExchangeHandle(std::shared_ptr<Exchange> exchange,
                 std::shared_ptr<std::atomic<std::size_t>> count);
  ~ExchangeHandle();
  ExchangeHandle(const ExchangeHandle&) = delete;
  ExchangeHandle& operator=(const ExchangeHandle&) = delete;

  Exchange& exchange() const { return *exchange_; }
  void uncount();  // a stream is counted by the connection

 private:
  std::shared_ptr<Exchange> exchange_;
  std::mutex mutex_;
  std::shared_ptr<std::atomic<std::size_t>> count_;  // nullptr: not counted any more
};

}  // namespace gantry::http
