// SPDX-License-Identifier: Apache-2.0
// A server of one file that answers as a test wants: in parts, cut anywhere, silent, or with
// another file from one request to the next.
#pragma once

#include "base/sys/unique_fd.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace gantry::driver_package {

struct Answer {
  std::string text;                   // head and body
  bool then_silent = false;           // keeps the connection, says nothing more
  std::chrono::milliseconds drip{0};  // a byte at a time, this long apart; 0: all at once
};

// How a server of files answers a request for `body`.
struct ServedFile {
  std::string body;
  std::string validator = "ETag: \"1\"";  // a header, "" for none
  std::string other_headers{};            // "Name: value\r\n" each
  bool ranges = true;
};

inline std::string header_of(std::string_view request, std::string_view name) {
  const auto at = request.find(fmt::format("\r\n{}: ", name));
  if (at == std::string_view::npos) return {};
  const auto begin = at + name.size() + 4;
  return std::string(request.substr(begin, request.find("\r\n", begin) - begin));
}

inline std::string serve(std::string_view request, const ServedFile& file) {
  const auto range = header_of(request, "Range");
  const auto condition = header_of(request, "If-Range");
  const bool same = condition.empty() || (!file.validator.empty() &&
                                          file.validator.find(condition) != std::string::npos);
  auto headers = file.other_headers;
  if (!file.validator.empty()) headers += file.validator + "\r\n";
  if (range.empty() || !same || !file.ranges)
    return fmt::format("HTTP/1.1 200 OK\r\n{}Content-Length: {}\r\n\r\n{}", headers,
                       file.body.size(), file.body);
  const auto first = static_cast<std::size_t>(std::stoull(range.substr(6)));
  if (first >= file.body.size())
    return fmt::format(
        "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{}\r\nContent-Length: "
        "0\r\n\r\n",
        file.body.size());
  const auto part = file.body.substr(first);
  return fmt::format(
      "HTTP/1.1 206 Partial Content\r\n{}Content-Range: bytes {}-{}/{}\r\nContent-Length: "
      "{}\r\n\r\n{}",
      headers, first, file.body.size() - 1, file.body.size(), part.size(), part);
}

class FileServer {
 public:
  // Called in the server's thread with the head of each request and its number from 0.
  using Script = std::function<Answer(std::string_view, std::size_t)>;
  explicit FileServer(Script script) : script_(std::move(script)) {
    listener_ = sys::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    (void)::listen(listener_.get(), 16);
    socklen_t size = sizeof address;
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  // One file, always whole.
  explicit FileServer(ServedFile file)
      : FileServer([file = std::move(file)](std::string_view request, std::size_t) {
          return Answer{serve(request, file)};
        }) {}
  ~FileServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;

  std::string url(std::string_view path) const {
    return fmt::format("http://127.0.0.1:{}{}", port_, path);
  }
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  static std::string read_head(int peer) {
    std::string text;
    while (text.find("\r\n\r\n") == std::string::npos) {
      std::array<char, 4096> buffer{};
      const auto got = ::recv(peer, buffer.data(), buffer.size(), 0);
      if (got <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

  void run() {
    std::vector<sys::UniqueFd> silent;
    for (std::size_t number = 0; true; ++number) {
      sys::UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer.valid()) return;
      const auto request = read_head(peer.get());
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      const auto answer = script_(request, number);
      std::string_view rest = answer.text;
      while (!rest.empty()) {
        const bool drips = answer.drip.count() > 0;
        const auto sent = ::send(peer.get(), rest.data(), drips ? 1 : rest.size(), MSG_NOSIGNAL);
        if (drips) std::this_thread::sleep_for(answer.drip);
        if (sent <= 0) break;
        rest.remove_prefix(static_cast<std::size_t>(sent));
      }
      if (answer.then_silent) silent.push_back(std::move(peer));
    }
  }

  Script script_;
  sys::UniqueFd listener_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace gantry::driver_package
