// SPDX-License-Identifier: Apache-2.0
// An API server in the test's own process, as far as clients of lists, watches and single objects
// can tell: resource versions, conflicts, uids, pages, bookmarks, events from a version on, 410 for
// what it has forgotten. And it can be a bad one.
#pragma once

#include "base/sys/unique_fd.hpp"
#include "net/http/message.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gantry::test {

class FakeApiServer {
 public:
  FakeApiServer();
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  std::string url() const;  // "http://127.0.0.1:1234"

  // ---- objects, by their path; what the API says of them is said of these too
  void put(const std::string& path, const std::string& text);  // made, or changed under its uid
  void remove(const std::string& path);
  std::string get(const std::string& path) const;  // "" when there is none
  std::vector<std::string> requests() const;       // "GET /api/v1/nodes?limit=250"

  // ---- how it misbehaves
  // Asked before each request; what it returns is the answer. Called by several threads.
  using AnswerOverride = std::function<std::unique_ptr<http::Response>(const http::Request&)>;
  void override_answers(AnswerOverride override_answers);
  // After a request has done its work: true, and nobody hears of it, the connection is closed.
  using LoseAnswer = std::function<bool(const http::Request&)>;
  void drop_answers(LoseAnswer lose);
  void forget_history();       // versions until now are 410 for watches
  void end_watches();          // in the middle of everything, as a server does that restarts
  void send(std::string raw);  // to all watches, as it is
  void bookmark();             // to all watches
  void page_limit(std::size_t objects);  // answers with fewer than it was asked for
  std::size_t watches() const;           // that are open

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

// Waits for what another thread brings about, a minute at most.
bool eventually(const std::function<bool()>& condition);

}  // namespace gantry::test
