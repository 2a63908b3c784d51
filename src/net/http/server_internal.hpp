// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/sys/loop.hpp"
#include "net/http/exchange_internal.hpp"
#include "net/http/listen_internal.hpp"
#include "net/http/memory_internal.hpp"
#include "net/http/request_reader.hpp"
#include "net/http/server.hpp"
#include "net/http/server_tls_internal.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace gantry::http {

inline constexpr std::size_t kReadSize = std::size_t{16} << 10;  // of one recv

// One connection. Everything here happens in the server's thread. Any path may end with
// ServerCore::drop(), which deletes the object; nothing may follow that call.
class ServerConnection {
 public:
  ServerConnection(ServerCore& core, std::uint64_t id, sys::UniqueFd socket,
                   std::shared_ptr<ClientMemory> client, std::unique_ptr<ServerTls> tls);
  ~ServerConnection();
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;
  Status start();
  void send_output();  // the handler has something
  void end();          // after the answer that is under way, if there is one

  bool is_busy() const { return state_ != State::Reading && state_ != State::Draining; }
  std::uint64_t changed() const { return changed_; }  // larger: later
  std::size_t body_bytes() const { return body_hold_.size(); }
  const std::shared_ptr<ClientMemory>& client() const { return client_; }

 private:
  enum class State : std::uint8_t {
    Reading,
    Waiting,    // for the handler's answer
    Writing,    // the answer
    Streaming,  // the handler writes when it likes
    Draining,   // all is sent; reads and forgets until the client closes
  };

  void advance(std::uint32_t events);
  void receive();
  void proceed();
  bool begin_body();  // false: it ended here, as below
  void dispatch();
  void reply(const Response& response, Part part, bool keep);
  void stream(Exchange::Output output);
  void end_stream();
  void start_writing();
  void put(std::string plain);
  bool flush();
  void watch_reader(bool progress);
  void finish_answer();
  void drain();
  void drop();
  void set_request_timer();
  void watch_for_state();
  void count_input();
  std::size_t unsent() const { return out_.size() - sent_; }

  ServerCore& core_;
  const std::uint64_t id_;
  sys::UniqueFd socket_;
  std::shared_ptr<ClientMemory> client_;
  std::unique_ptr<ServerTls> tls_;
  sys::Loop::Watch watch_;  // ends before the socket is closed
  std::uint32_t watched_ = 0;
  sys::Loop::Timer timer_;  // closes the connection or answers 408
  sys::Loop::Timer next_;   // starts on the next request that is in the buffer already
  bool has_next_ = false;
  RequestReader reader_;
  RequestReader::State timed_ = RequestReader::State::Waiting;  // what the timer is for
  State state_ = State::Reading;
  Part part_ = Part::Whole;
  bool keep_ = true;
  bool chunked_ = true;  // of the stream
  bool stalled_ = false;
  bool told_continue_ = false;
  std::uint64_t changed_ = 0;
  std::shared_ptr<Exchange> exchange_;  // while Waiting or Streaming
  std::string in_;
  std::size_t counted_input_ = 0;
  std::string out_;
  std::size_t sent_ = 0;  // of out_
  MemoryHold body_hold_;  // as announced
  MemoryHold out_hold_;
};

class ServerCore : public std::enable_shared_from_this<ServerCore> {
 public:
  ServerCore(const ServerOptions& options, std::vector<Route> routes,
             std::unique_ptr<sys::Loop> loop, Listener listener, std::shared_ptr<SSL_CTX> context);
  Status start();
  void stop();
  Status replace(const ServerIdentity& identity);
  std::uint16_t port() const { return listener_.port; }
  Server::Counts counts() const;

  // ---- for exchanges, from any thread
  void wake(std::uint64_t connection);
  bool add_stream();
  void remove_stream() { --streams_; }
  void count_refusal() { ++refused_; }

  // ---- for connections, in the server's thread
  sys::Loop& loop() { return *loop_; }
  const ServerOptions& options() const { return options_; }
  void drop(std::uint64_t id);
  // Calls the handler, or has a worker call it. Returns an answer (404, 405, 503) if there is none.
  std::optional<Response> dispatch(const std::shared_ptr<Exchange>& exchange, Request request,
                                   MemoryHold body);
  // Takes memory for a body. Returns false if there is none, although larger bodies that are still
  // on their way made room.
  bool hold_body(const ServerConnection& connection, MemoryHold& hold, std::size_t bytes);
  std::uint64_t tick() { return ++tick_; }
  void count_input(std::size_t before, std::size_t now) { input_ += now - before; }
  bool ending() const { return ending_; }

 private:
  using ClientKey = std::array<unsigned char, 16>;  // an IPv6 address; IPv4 is mapped into it
  using Connections = std::map<std::uint64_t, std::unique_ptr<ServerConnection>>;
  struct Job {
    std::shared_ptr<ExchangeHandle> reply;
    const Handler* handler = nullptr;
    Request request;
    MemoryHold body;
  };

  void accept_connections();
  void add(sys::UniqueFd socket, const ClientKey& key);
  std::shared_ptr<ClientMemory> client(const ClientKey& key);
  bool close_oldest(const ClientMemory* client, Eviction eviction);
  void begin_end();
  const Route* find_route(const Request& request) const;
  Response refuse(const Request& request) const;
  bool enqueue(Job job);
  void work();
  static void run(Job job);
  std::optional<Response> call(const LaterHandler& handler, const Request& request,
                               const std::shared_ptr<Exchange>& exchange);

  const ServerOptions options_;
  const std::vector<Route> routes_;
  const std::shared_ptr<MemoryBudget> memory_;
  std::unique_ptr<sys::Loop> loop_;

  // Of the server's thread.
  Listener listener_;
  std::map<ClientKey, std::weak_ptr<ClientMemory>> clients_;
  Connections connections_;
  std::uint64_t last_id_ = 0;
  std::uint64_t tick_ = 0;
  bool ending_ = false;
  sys::Loop::Watch watch_;
  sys::Loop::Timer pause_;
  sys::Loop::Timer deadline_;

  std::atomic<std::size_t> connection_count_ = 0;
  std::atomic<std::size_t> streams_ = 0;
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::atomic<std::size_t> input_ = 0;
  const std::shared_ptr<std::atomic<std::size_t>> unanswered_ =
      std::make_shared<std::atomic<std::size_t>>(0);  // by handlers that answer later

  std::mutex mutex_;  // of what follows
  std::condition_variable job_or_end_;
  std::shared_ptr<SSL_CTX> context_;  // nullptr: no TLS
  std::deque<Job> jobs_;
  bool stopping_ = false;

  std::thread thread_;
  std::vector<std::thread> workers_;
};

}  // namespace gantry::http
