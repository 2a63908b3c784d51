// SPDX-License-Identifier: Apache-2.0
#include "net/kube/api.hpp"

#include "base/core/text.hpp"
#include "net/kube/kubeconfig_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::kube {
namespace {

constexpr std::size_t kLineLimit = std::size_t{8} << 20;

Errc errc_from_status(int status) {
  switch (status) {
    case 401:
    case 403: return Errc::Denied;
    case 404: return Errc::NotFound;
    case 409: return Errc::Exists;
    case 429: return Errc::Busy;
    default: return status >= 500 ? Errc::Busy : Errc::Invalid;
  }
}

// Seconds; the other form, a date, is not used by API servers. A server may not stop us for ever.
std::chrono::seconds retry_after_of(const http::Response& response) {
  constexpr std::uint64_t kMaxRetryAfterSeconds = 60;
  const auto* value = http::find(response.headers, "Retry-After");
  if (value == nullptr || (response.status != 429 && response.status < 500)) return {};
  return std::chrono::seconds(std::min(parse_u64(trim(*value)).value_or(0), kMaxRetryAfterSeconds));
}

// The body of a failed call is a Status object with a message for people.
Error api_error(const http::Request& request, const http::Response& response) {
  std::string message{http::reason_of(response.status)};
  if (const auto status = json::Document::parse(response.body); status.ok()) {
    if (const auto said = (*status)["message"].string()) message = *said;
  }
  return {errc_from_status(response.status),
          fmt::format("{} {}: {} {}", request.method, request.target, response.status, message)};
}

std::string_view content_type(Patch kind) {
  switch (kind) {
    case Patch::Merge: return "application/merge-patch+json";
    case Patch::Strategic: return "application/strategic-merge-patch+json";
    case Patch::Apply: break;
  }
  return "application/apply-patch+yaml";
}

}  // namespace

Api::Api(ClientConfig access, std::chrono::milliseconds timeout, int cancel)
    : access_(std::move(access)), timeout_(timeout), client_(access_.server.endpoint, cancel) {}

http::Request Api::request_for(std::string method, const std::string& path) {
  if (!access_.token_file.empty()) {
    if (auto token = read_file(access_.token_file); token.ok())
      access_.token = std::string(trim(*token));
  }
  http::Request request{.method = std::move(method), .target = access_.server.prefix + path};
  request.headers.push_back({"Accept", "application/json"});
  request.headers.push_back({"User-Agent", "gantry/" GANTRY_VERSION});
  if (!access_.token.empty())
    request.headers.push_back({"Authorization", "Bearer " + access_.token});
  return request;
}

Error Api::refused(const http::Request& request, const http::Response& response) {
  retry_after_ = retry_after_of(response);
  return api_error(request, response);
}

Result<json::Document> Api::ask(const http::Request& request) {
  retry_after_ = {};
  auto sent = client_.send(request, timeout_);
  if (!sent.ok())
    return std::move(sent).error().in(fmt::format("the API server of {}", access_.from));
  if (sent->status / 100 != 2) return refused(request, *sent);
  return json::Document::parse(std::move(sent->body));
}

Result<json::Document> Api::get(const std::string& path) {
  return ask(request_for("GET", path));
}

Result<json::Document> Api::remove(const std::string& path) {
  return ask(request_for("DELETE", path));
}

Result<json::Document> Api::create(const std::string& path, const std::string& body) {
  auto request = request_for("POST", path);
  request.headers.push_back({"Content-Type", "application/json"});
  request.body = body;
  return ask(request);
}

Result<json::Document> Api::replace(const std::string& path, const std::string& body) {
  auto request = request_for("PUT", path);
  request.headers.push_back({"Content-Type", "application/json"});
  request.body = body;
  return ask(request);
}

Result<json::Document> Api::patch(const std::string& path, Patch kind, const std::string& body) {
  const auto* manager = kind == Patch::Apply ? "?fieldManager=gantry&force=true" : "";
  auto request = request_for("PATCH", path + manager);
  request.headers.push_back({"Content-Type", std::string(content_type(kind))});
  request.body = body;
  return ask(request);
}

Status Api::watch(const std::string& path, const Event& event, std::chrono::milliseconds timeout) {
  retry_after_ = {};
  std::string line;
  Status bad;
  const auto request = request_for("GET", path);
  const auto piece = [&](std::string_view bytes) {
    const auto seen = line.size();
    if (seen + bytes.size() > kLineLimit && bytes.find('\n') == std::string_view::npos) {
      bad = Error(Errc::TooLarge, fmt::format("an event of more than {} MiB", kLineLimit >> 20U));
      return false;  // before the text grows to twice its size
    }
    line.append(bytes);
    for (auto end = line.find('\n', seen); end != std::string::npos; end = line.find('\n')) {
      auto document = json::Document::parse(line.substr(0, end));
      line.erase(0, end + 1);
      if (!document.ok()) {
        bad = std::move(document).error();
        return false;
      }
      if (!event(*document)) return false;
    }
    return true;
  };
  auto done = client_.stream(request, piece, timeout, std::min(timeout, timeout_));
  if (!bad.ok()) return bad;
  if (!done.ok())
    return std::move(done).error().in(fmt::format("the API server of {}", access_.from));
  if (done->status / 100 != 2) return refused(request, *done);
  return {};
}

std::string percent_encode(std::string_view part) {
  std::string text;
  for (const char letter : part) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_';
    if (plain) {
      text.push_back(letter);
    } else {
      text += fmt::format("%{:02X}", byte);
    }
  }
  return text;
}

std::string pod_path(std::string_view name_space, std::string_view name) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", percent_encode(name_space),
                     percent_encode(name));
}

std::string node_path(std::string_view name) {
  return "/api/v1/nodes/" + percent_encode(name);
}

}  // namespace gantry::kube
