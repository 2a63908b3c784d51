// SPDX-License-Identifier: Apache-2.0
// The Kubernetes API, as far as a node agent and `gantry why` need it. Blocking, with a deadline on
// every call; objects are JSON documents, read where they are needed and not modelled.
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
  Strategic,  // Kubernetes' own: lists by key, which status.conditions needs
  Apply       // server-side apply, with our name as the field manager
};

class Api {
 public:
  // `cancel`: as http::Client's.
  explicit Api(ClientConfig access, std::chrono::milliseconds timeout = std::chrono::seconds(10),
               int cancel = -1);

  // Errors: NotFound (404), Denied (401, 403), Exists (409), Busy (429, 5xx), Invalid (others),
  // with the server's own message and who was asked.
  Result<json::Document> get(const std::string& path);
  Result<json::Document> create(const std::string& path, const std::string& body);
  Result<json::Document> replace(const std::string& path, const std::string& body);
  Result<json::Document> patch(const std::string& path, Patch kind, const std::string& body);
  Result<json::Document> remove(const std::string& path);

  // One event a line, until `event` returns false, the server ends it or `timeout` passes, which is
  // no error; that nothing is answered in the time of a call is one (Timeout). A last line that is
  // cut short is no event.
  using Event = std::function<bool(const json::Document&)>;
  Status watch(const std::string& path, const Event& event, std::chrono::milliseconds timeout);

  const ClientConfig& access() const { return access_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  http::Request request_for(std::string method, const std::string& path);
  Result<json::Document> ask(const http::Request& request);

  ClientConfig access_;
  std::chrono::milliseconds timeout_;
  http::Client client_;
};

// "/api/v1/namespaces/NS/pods/NAME"; parts are percent-encoded.
std::string pod_path(std::string_view name_space, std::string_view name);
std::string node_path(std::string_view name);
std::string percent_encode(std::string_view part);

}  // namespace gantry::kube
