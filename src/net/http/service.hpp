// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server for programs that ask (a scheduler, an API server): requests with bodies,
// answered by a few threads; TLS with a certificate that can be replaced while it runs. One more
// thread holds all connections, reads and writes without waiting, and gives a request to the others
// only when it is whole: somebody who sends slowly or not at all holds a connection and nothing
// else. Everything is bounded: connections, heads, bodies, time, requests that wait.
#pragma once

#include "base/core/result.hpp"
#include "net/http/message.hpp"
#include "net/http/server.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gantry::http {

struct ServerIdentity {
  std::string certificates;  // PEM: the server's own first, then what leads to the authority
  std::string key;           // PEM
};

struct ServiceOptions {
  Address address;
  const ServerIdentity* identity = nullptr;  // nullptr: without TLS
  unsigned threads = 8;
  std::size_t connections = 256;                   // the one idle longest makes room
  std::size_t body_limit = std::size_t{16} << 20;  // 413 beyond it
  // Of bodies that are being read or wait, 503, and of answers that are not read, which end then.
  std::size_t memory_limit = std::size_t{256} << 20;
  std::size_t waiting = 256;  // whole requests without a thread; 503
  std::chrono::milliseconds request{std::chrono::seconds(15)};  // from its first byte to its last
  std::chrono::milliseconds idle{std::chrono::seconds(120)};    // Go's clients close after 90 s
};

class Service {
 public:
  // Called by several threads at once. Exceptions must not leave it.
  using Handler = std::function<Response(const Request&)>;
  struct Route {
    std::string method;  // HEAD is answered where GET is
    std::string path;    // "/filter"; with "/*" at its end everything below: "/inspect/*"
    Handler handler;
  };

  // Listens and serves from here on. 404 where no path fits, 405 where the method does not.
  static Result<std::unique_ptr<Service>> start(const ServiceOptions& options,
                                                std::vector<Route> routes);
  ~Service();  // takes no more, lets what is being answered come to its end, closes
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // For connections made from now on. Invalid, and the old one stays, where key and certificate do
  // not fit each other.
  Status replace(const ServerIdentity& identity);

  std::uint16_t port() const;

  struct Counts {
    std::size_t connections = 0;
    std::uint64_t requests = 0;
    std::uint64_t refused = 0;  // by a bound, or no HTTP
  };
  Counts counts() const;

 private:
  friend class ServicePeer;
  class Work;
  explicit Service(std::unique_ptr<Work> work);
  std::unique_ptr<Work> work_;
};

}  // namespace gantry::http
