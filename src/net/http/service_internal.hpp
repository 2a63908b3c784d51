// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/sys/loop.hpp"
#include "net/http/listen_internal.hpp"
#include "net/http/request_reader.hpp"
#include "net/http/server_tls_internal.hpp"
#include "net/http/service.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace gantry::http {

// One connection. Everything here happens in the loop's thread. The last thing that any path does
// may be Work::drop(), which ends the object.
class ServicePeer {
 public:
  ServicePeer(Service::Work& work, std::uint64_t id, sys::UniqueFd socket,
              std::unique_ptr<ServerTls> tls);
  ~ServicePeer();
  Status start();
  void answer(const Response& response);  // to the request it gave away
  void end();                             // after the answer under way, if there is one

  bool is_busy() const { return doing_ == Doing::Waits || doing_ == Doing::Answers; }
  std::uint64_t since() const { return since_; }  // a larger number has changed later
  std::size_t held() const { return held_; }

 private:
  enum class Doing : std::uint8_t {
    Reads,
    Waits,    // for a thread that works on its request
    Answers,  // the answer goes out
    Leaves    // said everything; what the peer still sends is thrown away
  };

  void advance(std::uint32_t events);
  void receive();
  void proceed();
  void give_away();
  void reply(const Response& response, Part part, bool keep);
  void put(std::string_view plain);
  bool flush();  // false: it ended here
  bool count_answer();
  void said_all();
  void leave();
  void drop();
  void give_time();
  void hold(std::size_t bytes);

  Service::Work& work_;
  std::uint64_t id_;
  sys::UniqueFd socket_;
  std::unique_ptr<ServerTls> tls_;
  sys::Loop::Watch watch_;  // ends before the socket is closed
  sys::Loop::Timer patience_;
  RequestReader reader_;
  RequestReader::State timed_ = RequestReader::State::Waiting;  // what the timer is for
  Doing doing_ = Doing::Reads;
  Part part_ = Part::Whole;
  bool keep_ = true;
  bool told_continue_ = false;
  std::size_t held_ = 0;  // bytes of the body, counted by Work
  std::size_t owed_ = 0;  // bytes of the answer, counted too
  std::uint64_t since_ = 0;
  std::string in_;
  std::string out_;
};

class Service::Work {
 public:
  Work(const ServiceOptions& options, std::vector<Route> routes, std::unique_ptr<sys::Loop> loop,
       Listener listener, std::shared_ptr<SSL_CTX> context);
  ~Work();
  Status start();
  Status replace(const ServerIdentity& identity);
  std::uint16_t port() const { return listener_.port; }
  Counts counts() const;

  // ---- for peers, in the loop
  sys::Loop& loop() { return *loop_; }
  const ServiceOptions& options() const { return options_; }
  void drop(std::uint64_t id);
  bool enqueue(std::uint64_t id, Request request);  // false: too many wait
  bool hold(std::uint64_t id, std::size_t bytes);   // false: too much memory
  void let_go(std::size_t bytes) { held_ -= bytes; }
  std::uint64_t tick() { return ++tick_; }
  void count_refusal() { ++refused_; }
  bool ending() const { return ending_; }

 private:
  struct Job {
    std::uint64_t peer = 0;
    Request request;
  };

  void accept_peers();
  void add(sys::UniqueFd socket);
  bool make_room();
  void begin_end();
  void work();
  Response respond(const Request& request) const;

  const ServiceOptions options_;
  const std::vector<Route> routes_;
  std::unique_ptr<sys::Loop> loop_;

  // Of the loop's thread.
  Listener listener_;
  std::map<std::uint64_t, std::unique_ptr<ServicePeer>> peers_;
  std::uint64_t next_ = 1;
  std::uint64_t tick_ = 0;
  std::size_t held_ = 0;
  bool ending_ = false;
  sys::Loop::Watch watch_;
  sys::Loop::Timer pause_;
  sys::Loop::Timer last_;

  std::atomic<std::size_t> connections_ = 0;
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;

  std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  std::shared_ptr<SSL_CTX> context_;  // nullptr: without TLS
  std::deque<Job> jobs_;
  bool stopping_ = false;

  std::thread looper_;
  std::vector<std::thread> workers_;
};

}  // namespace gantry::http
