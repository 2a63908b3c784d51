// SPDX-License-Identifier: Apache-2.0
// A fake API server in the process of the test. It supports lists, watches and single objects:
// resource versions, conflicts, uids, pages, bookmarks, events from a version on, 410 for old
// versions. It can also misbehave.
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
  void put(const std::string& path,
           const std::string& text);  // creates it, or changes it and keeps its uid
  void remove(const std::string& path);
  std::string get(const std::string& path) const;  // "" when there is none
  std::vector<std::string> requests() const;       // "GET /api/v1/nodes?limit=250"

  // ---- how it misbehaves
  // Asked before each request; what it returns is the answer. Called by several threads.
  using AnswerOverride = std::function<std::unique_ptr<http::Response>(const http::Request&)>;
  void override_answers(AnswerOverride override_answers);
  // Called after a request took effect: return true to close the connection without an answer.
  using LoseAnswer = std::function<bool(const http::Request&)>;
  void drop_answers(LoseAnswer lose);
  void forget_history();                 // versions until now are 410 for watches
  void end_watches();                    // without notice, like a server that restarts
  void send(std::string raw);            // to all watches, unchanged
  void bookmark();                       // to all watches
  void page_limit(std::size_t objects);  // returns at most this many objects per page
  std::size_t watches() const;           // that are open

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace gantry::test
