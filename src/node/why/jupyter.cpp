// SPDX-License-Identifier: Apache-2.0
#include "node/why/jupyter.hpp"

#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "net/http/authority.hpp"
#include "net/http/websocket.hpp"
#include "net/kube/event.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace gantry::why {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kRequests = 5;  // one may get through a proxy that loses most
constexpr std::size_t kIdLimit = 64;
// A kernel that computes answers on `control` only; one that is older than that, on `shell` only.
constexpr std::array<std::string_view, 2> kChannels{"shell", "control"};
// Where the pages of Jupyter begin, below its base URL.
constexpr std::array<std::string_view, 11> kPages{"api",   "consoles",  "doc",   "edit",
                                                  "files", "lab",       "login", "notebooks",
                                                  "retro", "terminals", "tree"};

// The id becomes part of a path, and a hostile server chose it.
bool is_kernel_id(std::string_view id) {
  return !id.empty() && id.size() <= kIdLimit &&
         std::all_of(id.begin(), id.end(), [](unsigned char letter) {
           return std::isalnum(letter) != 0 || letter == '-';
         });
}

std::string base_url(std::string_view path) {
  std::string base;
  for (const auto part : split(path, '/')) {
    if (part.empty()) continue;
    if (std::find(kPages.begin(), kPages.end(), part) != kPages.end()) break;
    base += fmt::format("/{}", part);
  }
  return base;
}

std::string origin(const http::Endpoint& endpoint) {
  return fmt::format("{}://{}", endpoint.secure ? "https" : "http", http::authority(endpoint));
}

// Only for a server that has shown to be Jupyter: a port of the pod may have any other.
http::Request request_with_token(const JupyterUrl& url, std::string_view path) {
  http::Request request{.target = fmt::format("{}{}", url.server.prefix, path)};
  if (!url.token.empty())
    request.headers.push_back({"Authorization", fmt::format("token {}", url.token)});
  return request;
}

// One server's connection, and the time that is left for it.
class JupyterClient {
 public:
  JupyterClient(const JupyterUrl& url, milliseconds timeout)
      : url_(url), client_(url.server.endpoint), until_(steady_clock::now() + timeout) {}

  Result<http::Response> get(const http::Request& request) { return client_.send(request, left()); }
  const JupyterUrl& url() const { return url_; }
  milliseconds left() const {
    return std::max(milliseconds(0),
                    std::chrono::duration_cast<milliseconds>(until_ - steady_clock::now()));
  }

 private:
  const JupyterUrl& url_;
  http::Client client_;
  steady_clock::time_point until_;
};

bool find_server(JupyterClient& client, JupyterAnswer& answer) {
  const auto response = client.get({.target = client.url().server.prefix + "/api"});
  if (!response.ok()) {
    answer.error = response.error().text();
    return false;
  }
  answer.stage = JupyterStage::NotJupyter;
  answer.status = response->status;
  const auto said = json::Document::parse(response->body);
  if (response->status == 200 && said.ok())
    answer.version = said->root()["version"].string_or_empty();
  return !answer.version.empty();
}

int preference(json::Value kernel) {
  const auto state = kernel["execution_state"].string_or_empty();
  return state == "dead" ? 0 : state == "idle" ? 2 : 1;
}

bool find_kernel(JupyterClient& client, const std::string& wanted, JupyterAnswer& answer) {
  const auto response = client.get(request_with_token(client.url(), "/api/kernels"));
  if (!response.ok()) {
    answer.stage = JupyterStage::Unreachable;
    answer.error = response.error().text();
    return false;
  }
  answer.status = response->status;
  if (response->status != 200) {
    answer.stage = JupyterStage::Denied;
    return false;
  }
  answer.stage = JupyterStage::NoKernel;
  const auto kernels = json::Document::parse(response->body);
  if (!kernels.ok()) return false;
  int best = 0;
  for (const auto kernel : kernels->root()) {
    const auto id = kernel["id"].string_or_empty();
    if (!is_kernel_id(id) || (!wanted.empty() && id != wanted) || preference(kernel) <= best)
      continue;
    best = preference(kernel);
    answer.kernel = id;
    answer.about = fmt::format("{}, {}", kernel["name"].string_or_empty(),
                               kernel["execution_state"].string_or_empty());
  }
  return best > 0;
}

std::string message_id(std::string_view session, std::string_view channel, int number) {
  return fmt::format("{}-{}-{}", session, channel, number);
}

// kernel_info_request, as JSON: the protocol of a WebSocket without a subprotocol.
std::string kernel_info_request(std::string_view session, std::string_view channel, int number) {
  json::Writer out;
  const auto nothing = [] {};
  out.object([&] {
    out.member("channel", channel);
    out.object("header", [&] {
      out.member("msg_id", message_id(session, channel, number));
      out.member("msg_type", "kernel_info_request");
      out.member("session", session);
      out.member("username", "gantry");
      out.member("version", "5.3");
      out.member("date", kube::format_utc(std::chrono::duration_cast<std::chrono::seconds>(
                                              std::chrono::system_clock::now().time_since_epoch())
                                              .count()));
    });
    out.object("parent_header", nothing);
    out.object("metadata", nothing);
    out.object("content", nothing);
    out.array("buffers", nothing);
  });
  return std::move(out).text();
}

// Which of our requests are answered: on each channel a bit for each request.
class AnsweredRequests {
 public:
  explicit AnsweredRequests(std::string session) : session_(std::move(session)) {}

  // Other messages are what the kernel tells everyone, and answers to browsers.
  void note(std::string text) {
    const auto message = json::Document::parse(std::move(text));
    if (!message.ok() ||
        message->root()["header"]["msg_type"].string_or_empty() != "kernel_info_reply")
      return;
    const auto parent = message->root()["parent_header"]["msg_id"].string_or_empty();
    for (std::size_t channel = 0; channel < kChannels.size(); ++channel) {
      for (int number = 0; number < kRequests; ++number)
        if (parent == message_id(session_, kChannels.at(channel), number))
          seen_.at(channel) |= 1U << static_cast<unsigned>(number);
    }
  }
  int count() const { return std::max(__builtin_popcount(seen_[0]), __builtin_popcount(seen_[1])); }

 private:
  std::string session_;
  std::array<unsigned, kChannels.size()> seen_{};
};

Status exchange(http::WebSocket& socket, const std::string& session, JupyterAnswer& answer) {
  const auto start = steady_clock::now();
  AnsweredRequests answered(session);
  answer.requests = kRequests;
  for (int number = 0; number < kRequests; ++number) {
    for (const auto channel : kChannels)
      GANTRY_CHECK(
          socket.send_text(kernel_info_request(session, channel, number), start + kKernelTimeout));
  }
  while (answer.answers < kRequests) {
    GANTRY_TRY(auto text, socket.read(start + kKernelTimeout));
    if (!text) return Error(Errc::NotFound, "the connection was closed");
    answered.note(*std::move(text));
    if (answer.answers == 0 && answered.count() > 0)
      answer.first = std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
    answer.answers = answered.count();
  }
  return {};
}

void ask_kernel(const JupyterUrl& url, milliseconds timeout, JupyterAnswer& answer) {
  const auto session =
      fmt::format("gantry-{}-{}", ::getpid(), steady_clock::now().time_since_epoch().count());
  auto request = request_with_token(
      url, fmt::format("/api/kernels/{}/channels?session_id={}", answer.kernel, session));
  request.headers.push_back({"Origin", origin(url.server.endpoint)});  // as browsers do
  answer.stage = JupyterStage::Refused;
  auto upgrade = http::open_websocket(url.server.endpoint, std::move(request), timeout);
  if (!upgrade.ok()) {
    answer.status = 0;
    answer.error = upgrade.error().text();
    return;
  }
  if (const auto* refusal = std::get_if<http::Response>(&*upgrade)) {
    answer.status = refusal->status;
    return;
  }
  answer.stage = JupyterStage::Lossy;
  answer.status = 101;
  const auto exchanged = exchange(std::get<http::WebSocket>(*upgrade), session, answer);
  if (exchanged.ok()) {
    answer.stage = JupyterStage::Answered;
  } else if (exchanged.error().code() != Errc::Timeout) {
    answer.error = exchanged.error().text();
  }
}

}  // namespace

Result<JupyterUrl> parse_jupyter_url(std::string_view text) {
  JupyterUrl url;
  text = text.substr(0, text.find('#'));
  const auto question = text.find('?');
  if (question != std::string_view::npos) {
    for (const auto part : split(text.substr(question + 1), '&'))
      if (part.starts_with("token=")) url.token = part.substr(6);
    text = text.substr(0, question);
  }
  GANTRY_TRY(url.server, http::parse_url(text));
  url.server.prefix = base_url(url.server.prefix);
  return url;
}

JupyterAnswer ask_jupyter(const JupyterUrl& url, const std::string& kernel, milliseconds timeout) {
  JupyterAnswer answer{.where = origin(url.server.endpoint) + url.server.prefix,
                       .port = url.server.endpoint.port};
  JupyterClient client(url, timeout);
  if (find_server(client, answer) && find_kernel(client, kernel, answer))
    ask_kernel(url, client.left(), answer);
  return answer;
}

}  // namespace gantry::why
