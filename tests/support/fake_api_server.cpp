// SPDX-License-Identifier: Apache-2.0
#include "support/fake_api_server.hpp"

#include "base/core/text.hpp"
#include "net/http/request_reader.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <thread>

namespace gantry::test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool code = text[at] == '%' && at + 2 < text.size();
    plain +=
        code ? static_cast<char>(parse_u64(text.substr(at + 1, 2), 16).value_or('?')) : text[at];
    if (code) at += 2;
  }
  return plain;
}

struct Target {
  std::string path;
  std::map<std::string, std::string> query;
  std::string of(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  }
};

Target target_of(std::string_view text) {
  Target target;
  const auto mark = text.find('?');
  target.path = unescaped(text.substr(0, mark));
  if (mark == std::string_view::npos) return target;
  for (const auto part : split(text.substr(mark + 1), '&')) {
    const auto equals = part.find('=');
    target.query[std::string(part.substr(0, equals))] =
        equals == std::string_view::npos ? "" : unescaped(part.substr(equals + 1));
  }
  return target;
}

std::string parent_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

// "/api/v1/pods" also contains the objects below "/api/v1/namespaces/NS/pods".
bool is_in(const std::string& path, const std::string& collection) {
  const auto parent = parent_of(path);
  if (parent == collection) return true;
  const auto slash = collection.rfind('/');
  return parent.starts_with(collection.substr(0, slash) + "/namespaces/") &&
         parent.ends_with(collection.substr(slash));
}

http::Response status(int code, const std::string& message) {
  return {.status = code,
          .headers = {},
          .body = Json{{"kind", "Status"}, {"code", code}, {"message", message}}.dump() + "\n"};
}

struct ApiEvent {
  std::uint64_t version = 0;
  std::string type;
  std::string path;
  Json object;
};

}  // namespace

class FakeApiServer::Work {
 public:
  Work() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_.get(), 64);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~Work() {
    {
      const std::lock_guard lock(mutex_);
      ++cut_;
    }
    changed_.notify_all();
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (auto& peer : peers_) ::shutdown(peer.socket.get(), SHUT_RDWR);
    for (auto& peer : peers_) peer.thread.join();
  }

  // ---- objects; with the lock

  Json& store(const std::string& path, Json object, const std::string& type) {
    auto& metadata = object["metadata"];
    metadata["resourceVersion"] = fmt::to_string(++version_);
    if (metadata.value("name", "").empty()) metadata["name"] = path.substr(path.rfind('/') + 1);
    const auto known = objects_.find(path);
    if (known != objects_.end()) {
      metadata["uid"] = known->second["metadata"]["uid"];
    } else if (metadata.value("uid", "").empty()) {
      metadata["uid"] = fmt::format("uid-{}", version_);
    }
    history_.push_back({version_, type, path, object});
    changed_.notify_all();
    return objects_[path] = std::move(object);
  }

  void erase(const std::string& path) {
    const auto known = objects_.find(path);
    if (known == objects_.end()) return;
    auto object = known->second;
    object["metadata"]["resourceVersion"] = fmt::to_string(++version_);
    history_.push_back({version_, "DELETED", path, std::move(object)});
    objects_.erase(known);
    changed_.notify_all();
  }

  http::Response answer(const http::Request& request, const Target& target) {
    const std::lock_guard lock(mutex_);
    if (request.method == "GET") return read(target);
    if (request.method == "POST") return create(target, Json::parse(request.body));
    if (request.method == "PUT") return replace(target, Json::parse(request.body));
    if (request.method == "PATCH") return patch(target, Json::parse(request.body));
    if (request.method != "DELETE") return status(405, "not here");
    if (!objects_.contains(target.path)) return status(404, "not found");
    erase(target.path);
    return {.status = 200, .headers = {}, .body = "{}"};
  }

  http::Response read(const Target& target) {
    if (const auto found = objects_.find(target.path); found != objects_.end())
      return {.status = 200, .headers = {}, .body = found->second.dump()};
    const auto last = target.path.substr(target.path.rfind('/') + 1);
    const bool list = target.query.contains("limit");
    return list ? page(target) : status(404, fmt::format("\"{}\" not found", last));
  }

  http::Response page(const Target& target) {
    auto left = std::min<std::size_t>(parse_u64(target.of("limit")).value_or(500), page_limit_);
    auto after = target.of("continue");
    Json list{{"kind", "List"}, {"metadata", {{"resourceVersion", fmt::to_string(version_)}}}};
    list["items"] = Json::array();
    for (auto at = objects_.upper_bound(after); at != objects_.end(); ++at) {
      if (!is_in(at->first, target.path)) continue;
      if (left-- == 0) {
        list["metadata"]["continue"] = after;
        break;
      }
      list["items"].push_back(at->second);
      after = at->first;
    }
    return {.status = 200, .headers = {}, .body = list.dump()};
  }

  http::Response create(const Target& target, Json object) {
    if (target.path.ends_with("/binding")) return bind(parent_of(target.path), object);
    const auto path = target.path + "/" + object["metadata"].value("name", "");
    if (objects_.contains(path)) return status(409, "already exists");
    return {.status = 201, .headers = {}, .body = store(path, std::move(object), "ADDED").dump()};
  }

  http::Response replace(const Target& target, Json object) {
    const auto known = objects_.find(target.path);
    if (known == objects_.end()) return status(404, "not found");
    const auto version = object["metadata"].value("resourceVersion", "");
    if (!version.empty() && version != known->second["metadata"]["resourceVersion"])
      return status(409, "the object has been modified");
    return {.status = 200,
            .headers = {},
            .body = store(target.path, std::move(object), "MODIFIED").dump()};
  }

  // Strategic merge: lists of named objects by their names, everything else as a merge patch.
  static void merge(Json& into, const Json& change) {
    for (const auto& [key, value] : change.items()) {
      auto& member = into[key];
      if (value.is_object() && member.is_object()) {
        merge(member, value);
      } else if (value.is_array() && member.is_array() && value[0].contains("name")) {
        for (const auto& element : value)
          for (auto& old : member)
            if (old["name"] == element["name"]) merge(old, element);
      } else {
        member = value;
      }
    }
  }

  http::Response patch(const Target& target, const Json& change) {
    const auto known = objects_.find(target.path);
    if (known == objects_.end()) return status(404, "not found");
    auto object = known->second;
    merge(object, change);
    return {.status = 200,
            .headers = {},
            .body = store(target.path, std::move(object), "MODIFIED").dump()};
  }

  http::Response bind(const std::string& path, const Json& binding) {
    const auto known = objects_.find(path);
    if (known == objects_.end()) return status(404, "pods not found");
    auto pod = known->second;
    if (const auto uid = binding["metadata"].value("uid", "");
        !uid.empty() && uid != pod["metadata"]["uid"])
      return status(409, "Precondition failed: UID");
    if (pod["metadata"].contains("deletionTimestamp"))
      return status(409, "pod is being deleted, cannot be assigned to a host");
    if (pod["spec"].contains("nodeName")) return status(409, "pod is already assigned to node");
    pod["spec"]["nodeName"] = binding["target"]["name"];
    const auto annotations = binding["metadata"].value("annotations", Json::object());
    for (const auto& [key, value] : annotations.items())
      pod["metadata"]["annotations"][key] = value;
    store(path, std::move(pod), "MODIFIED");
    return status(201, "");
  }

  // ---- connections

  struct Peer {
    sys::UniqueFd socket;
    std::thread thread;
  };

  void accept_all() {
    while (true) {
      sys::UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket.valid()) return;
      const int fd = socket.get();
      peers_.push_back({std::move(socket), {}});
      peers_.back().thread = std::thread([this, fd] {
        serve(fd);
        ::shutdown(fd, SHUT_RDWR);
      });
    }
  }

  static bool put(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  static bool more(int fd, std::string& in) {
    std::array<char, 65536> buffer{};
    const auto got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got <= 0) return false;
    in.append(buffer.data(), static_cast<std::size_t>(got));
    return true;
  }

  void serve(int fd) {
    std::string in;
    while (true) {
      auto end = in.find("\r\n\r\n");
      for (; end == std::string::npos; end = in.find("\r\n\r\n"))
        if (!more(fd, in)) return;
      auto request = http::parse_request_head(std::string_view(in).substr(0, end + 4));
      if (!request.ok()) return;
      const auto* length = http::find(request->headers, "Content-Length");
      const auto size = length == nullptr ? 0 : parse_u64(*length).value_or(0);
      while (in.size() < end + 4 + size)
        if (!more(fd, in)) return;
      request->body = in.substr(end + 4, size);
      in.erase(0, end + 4 + size);
      if (!take(fd, *request)) return;
    }
  }

  // False: the connection ends.
  bool take(int fd, const http::Request& request) {
    const auto target = target_of(request.target);
    AnswerOverride override_answers;
    LoseAnswer lose;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request.method + " " + request.target);
      override_answers = instead_;
      lose = lose_;
    }
    auto other = override_answers ? override_answers(request) : nullptr;
    if (!other && target.of("watch") == "true") {
      watch(fd, target);
      return false;
    }
    const auto response = other ? *other : answer(request, target);
    if (lose && lose(request)) return false;
    auto text = fmt::format("HTTP/1.1 {} X\r\n", response.status);
    for (const auto& header : response.headers)
      text += fmt::format("{}: {}\r\n", header.name, header.value);
    text += fmt::format("Content-Length: {}\r\n\r\n{}", response.body.size(), response.body);
    return put(fd, text);
  }

  static std::string chunk(const std::string& text) {
    return text.empty() ? "" : fmt::format("{:x}\r\n{}\r\n", text.size(), text);
  }

  static bool is_gone(int fd) {
    char byte = 0;
    return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }

  void watch(int fd, const Target& target) {
    const auto time = parse_u64(target.of("timeoutSeconds")).value_or(300);
    const auto end = Clock::now() + std::chrono::seconds(time);
    std::unique_lock lock(mutex_);
    auto seen = parse_u64(target.of("resourceVersion")).value_or(0);
    const auto raw = raw_.size();
    const auto cut = cut_;
    std::string out = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    if (seen < forgotten_) {
      const Json gone{{"type", "ERROR"},
                      {"object", {{"kind", "Status"}, {"code", 410}, {"message", "too old"}}}};
      put(fd, out + chunk(gone.dump() + "\n") + "0\r\n\r\n");
      return;
    }
    ++watches_;
    auto sent = raw;
    while (cut == cut_) {
      for (const auto& event : history_) {
        if (event.version <= seen || !is_in(event.path, target.path)) continue;
        out += chunk(Json{{"type", event.type}, {"object", event.object}}.dump() + "\n");
        seen = event.version;
      }
      for (; sent < raw_.size(); ++sent) out += chunk(raw_[sent]);
      const auto version = version_;  // before the lock is given up: a change meanwhile is news
      lock.unlock();
      const bool there = put(fd, std::exchange(out, {}));
      lock.lock();
      if (!there) break;
      const auto news = [&] { return cut != cut_ || version != version_ || sent < raw_.size(); };
      while (!changed_.wait_for(lock, 5ms, news) && !is_gone(fd) && Clock::now() < end) continue;
      if (!news() && Clock::now() >= end) put(fd, "0\r\n\r\n");
      if (!news()) break;
    }
    --watches_;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Json> objects_;
  std::vector<ApiEvent> history_;
  std::uint64_t version_ = 100;
  std::uint64_t forgotten_ = 0;
  std::vector<std::string> requests_;
  std::vector<std::string> raw_;
  std::uint64_t cut_ = 0;
  std::size_t watches_ = 0;
  std::size_t page_limit_ = 500;
  AnswerOverride instead_;
  LoseAnswer lose_;
  sys::UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::list<Peer> peers_;
  std::thread acceptor_;
};

FakeApiServer::FakeApiServer() : work_(std::make_unique<Work>()) {}
FakeApiServer::~FakeApiServer() = default;

std::string FakeApiServer::url() const {
  return fmt::format("http://127.0.0.1:{}", work_->port_);
}

void FakeApiServer::put(const std::string& path, const std::string& text) {
  const std::lock_guard lock(work_->mutex_);
  const bool known = work_->objects_.contains(path);
  work_->store(path, Json::parse(text), known ? "MODIFIED" : "ADDED");
}

void FakeApiServer::remove(const std::string& path) {
  const std::lock_guard lock(work_->mutex_);
  work_->erase(path);
}

std::string FakeApiServer::get(const std::string& path) const {
  const std::lock_guard lock(work_->mutex_);
  const auto found = work_->objects_.find(path);
  return found == work_->objects_.end() ? "" : found->second.dump();
}

std::vector<std::string> FakeApiServer::requests() const {
  const std::lock_guard lock(work_->mutex_);
  return work_->requests_;
}

void FakeApiServer::override_answers(AnswerOverride override_answers) {
  const std::lock_guard lock(work_->mutex_);
  work_->instead_ = std::move(override_answers);
}

void FakeApiServer::drop_answers(LoseAnswer lose) {
  const std::lock_guard lock(work_->mutex_);
  work_->lose_ = std::move(lose);
}

void FakeApiServer::forget_history() {
  const std::lock_guard lock(work_->mutex_);
  work_->history_.clear();
  work_->forgotten_ = ++work_->version_;
}

void FakeApiServer::end_watches() {
  const std::lock_guard lock(work_->mutex_);
  ++work_->cut_;
  work_->changed_.notify_all();
}

void FakeApiServer::send(std::string raw) {
  const std::lock_guard lock(work_->mutex_);
  work_->raw_.push_back(std::move(raw));
  work_->changed_.notify_all();
}

void FakeApiServer::bookmark() {
  const std::lock_guard lock(work_->mutex_);
  const Json mark{
      {"type", "BOOKMARK"},
      {"object", {{"metadata", {{"resourceVersion", fmt::to_string(work_->version_)}}}}}};
  work_->raw_.push_back(mark.dump() + "\n");
  work_->changed_.notify_all();
}

void FakeApiServer::page_limit(std::size_t objects) {
  const std::lock_guard lock(work_->mutex_);
  work_->page_limit_ = objects;
}

std::size_t FakeApiServer::watches() const {
  const std::lock_guard lock(work_->mutex_);
  return work_->watches_;
}

}  // namespace gantry::test
