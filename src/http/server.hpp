// SPDX-License-Identifier: Apache-2.0
// A page or two for Prometheus and a health probe, in a loop that does other things: GET and HEAD
// only, small requests, bounded in connections and in time. Not for the open internet.
#pragma once

#include "base/result.hpp"
#include "http/message.hpp"
#include "sys/loop.hpp"
#include "sys/unique_fd.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace gantry::http {

// "127.0.0.1:2112", "[::]:9400", ":9400" (all addresses), "0.0.0.0:0" (a free port).
struct Address {
  std::string host;  // "" = all
  std::uint16_t port = 0;
};
Result<Address> parse_address(std::string_view text);

class Server {
 public:
  using Page = std::function<Response()>;

  static Result<std::unique_ptr<Server>> listen(sys::Loop& loop, const Address& address);
  ~Server();

  // A path without query; others are 404.
  void page(std::string path, Page page) { pages_[std::move(path)] = std::move(page); }

  std::uint16_t port() const { return port_; }

 private:
  class Peer;
  Server(sys::Loop& loop, sys::UniqueFd socket, std::uint16_t port);
  Status start();
  void accept_peers();
  Response answer(const Request& request) const;
  void drop(std::uint64_t id);

  sys::Loop& loop_;
  sys::UniqueFd socket_;
  std::uint16_t port_ = 0;
  sys::Loop::Watch watch_;
  std::map<std::string, Page, std::less<>> pages_;
  std::map<std::uint64_t, std::unique_ptr<Peer>> peers_;
  std::uint64_t next_ = 1;
};

// A request's head, up to and with its empty line. Invalid for what is no request.
Result<Request> parse_request_head(std::string_view head);

}  // namespace gantry::http
