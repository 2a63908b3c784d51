// SPDX-License-Identifier: Apache-2.0
// The part of the Kubernetes API that Gantry needs. Calls block and have a deadline. Objects are
// JSON documents; there are no types for them.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "net/http/client.hpp"
#include "net/kube/client_config.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace gantry::kube {

enum class Patch : std::uint8_t {
  Merge,      // RFC 7386: null removes
  Strategic,  // Kubernetes' own: merges lists by key, which status.conditions needs
  Apply       // server-side apply, with our name as the field manager
};

class Api {
 public:
  // `cancel`: as in http::Client.
  explicit Api(ClientConfig access, std::chrono::milliseconds timeout = std::chrono::seconds(10),
               int cancel = -1);

  // Errors: NotFound (404), Denied (401, 403), Exists (409), Busy (429, 5xx), Invalid (others),
  // with the server's message and the source of the configuration.
  Result<json::Document> get(const std::string& path);
  Result<json::Document> create(const std::string& path, const std::string& body);
  Result<json::Document> replace(const std::string& path, const std::string& body);
  Result<json::Document> patch(const std::string& path, Patch kind, const std::string& body);
  Result<json::Document> remove(const std::string& path);

  // Calls `event` for each line until it returns false, the server ends the watch or `timeout`
  // passes; none of these is an error. Returns Timeout if the server sends no answer within the
  // deadline of a call. An incomplete last line is ignored.
  using Event = std::function<bool(const json::Document&)>;
  Status watch(const std::string& path, const Event& event, std::chrono::milliseconds timeout);

  // The pause that the server asked for with its answer to the last call (Retry-After of a 429 or
  // 5xx); 0 if it did not.
  std::chrono::seconds retry_after() const { return retry_after_; }

  const ClientConfig& access() const { return access_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  http::Request request_for(std::string method, const std::string& path);
  Result<json::Document> ask(const http::Request& request);
  Error refused(const http::Request& request, const http::Response& response);

  ClientConfig access_;
  std::chrono::milliseconds timeout_;
  std::chrono::seconds retry_after_{0};
  http::Client client_;
};

// "/api/v1/namespaces/NS/pods/NAME"; parts are percent-encoded.
std::string pod_path(std::string_view name_space, std::string_view name);
std::string node_path(std::string_view name);
std::string percent_encode(std::string_view part);

}  // namespace gantry::kube
