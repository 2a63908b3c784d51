// SPDX-License-Identifier: Apache-2.0
// A page or two for Prometheus and a health probe, in a loop that does other things: GET and HEAD
// only, small requests, bounded in connections and in time. Not for the open internet.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "base/sys/unique_fd.hpp"
#include "net/http/message.hpp"

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
  // Gives the answer, once. False when nobody waits for it any more: the connection is gone.
  using Answer = std::function<bool(const Response&)>;
  using LaterPage = std::function<void(Answer)>;

  static Result<std::unique_ptr<Server>> listen(sys::Loop& loop, const Address& address);
  ~Server();

  // A path without query; others are 404.
  void page(std::string path, Page page) { pages_[std::move(path)] = std::move(page); }

  // For what takes its time: the page keeps the answer and calls it later, in the loop. A peer that
  // closes its side meanwhile has gone.
  void page_later(std::string path, LaterPage page) { later_[std::move(path)] = std::move(page); }

  std::uint16_t port() const { return port_; }

 private:
  class Peer;
  Server(sys::Loop& loop, sys::UniqueFd socket, std::uint16_t port);
  Status start();
  void accept_peers();
  Response answer(const Request& request) const;
  const LaterPage* later(std::string_view target) const;
  Answer answer_for(std::uint64_t id, std::uint64_t ticket);
  void drop(std::uint64_t id);

  sys::Loop& loop_;
  sys::UniqueFd socket_;
  std::uint16_t port_ = 0;
  sys::Loop::Watch watch_;
  sys::Loop::Timer pause_;
  std::map<std::string, Page, std::less<>> pages_;
  std::map<std::string, LaterPage, std::less<>> later_;
  std::map<std::uint64_t, std::unique_ptr<Peer>> peers_;
  std::uint64_t next_ = 1;
  std::shared_ptr<Server*> self_ = std::make_shared<Server*>(this);  // for answers that outlive us
};

// A request's head, up to and with its empty line. Invalid for what is no request.
Result<Request> parse_request_head(std::string_view head);

}  // namespace gantry::http
