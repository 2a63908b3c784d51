// SPDX-License-Identifier: Apache-2.0
// gRPC client on a unix socket. Connects at the first call and again after the connection was lost.
// Calls that were under way then fail with UNAVAILABLE; no call is repeated.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "net/grpc/call_status.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace gantry::grpc {

class Client {
 public:
  // Called once for every call, from the loop, never from inside call(). The reply is empty unless
  // the status is OK.
  using OnAnswer = std::function<void(const CallStatus& outcome, std::string reply)>;
  using OnMessage = std::function<void(std::string message)>;
  using OnEnd = std::function<void(const CallStatus& outcome)>;
  struct Options {
    std::size_t message_limit = std::size_t{4} << 20;
  };

  Client(sys::Loop& loop, std::string path);
  Client(sys::Loop& loop, std::string path, const Options& options);
  ~Client();  // the callbacks of unfinished calls are never called
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void call(std::string_view method, std::string request, std::chrono::milliseconds deadline,
            OnAnswer on_answer);

  // A stream from the server, without a deadline. The destructor cancels it and on_end is not
  // called.
  class Stream {
   public:
    Stream() = default;
    Stream(Stream&&) = default;
    Stream& operator=(Stream&& other) noexcept;
    ~Stream() { cancel(); }
    void cancel();

   private:
    friend class Client;
    explicit Stream(std::function<void()> end) : end_(std::move(end)) {}
    std::function<void()> end_;
  };
  [[nodiscard]] Stream stream(std::string_view method, std::string request, OnMessage on_message,
                              OnEnd on_end);

  const std::string& path() const;

 private:
  struct Call;
  class ClientConnection;
  struct SharedState;
  std::shared_ptr<SharedState> shared_;
};

// Makes one call on a separate connection; blocks until the answer or the deadline.
Result<std::string> call_once(const std::string& path, std::string_view method,
                              const std::string& request, std::chrono::milliseconds deadline,
                              const Client::Options& options = {});

}  // namespace gantry::grpc
