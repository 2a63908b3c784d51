// SPDX-License-Identifier: Apache-2.0
// A DNS server on loopback that answers as a test says, and the messages for it.
#pragma once

#include "base/sys/stop_signal.hpp"
#include "base/sys/unique_fd.hpp"
#include "net/dns/message.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace gantry::dns {

struct ReceivedQuery {
  std::string bytes;
  std::string name;  // as text
  RecordType type = RecordType::A;
  bool by_tcp = false;
  std::uint16_t source_port = 0;
};

class NameServer {
 public:
  // The messages to send back, in this order; none: the server is silent.
  using Handler = std::function<std::vector<std::string>(const ReceivedQuery&)>;

  // Serves UDP and TCP at the same port of an address of 127.0.0.0/8. Port 0: any free one.
  explicit NameServer(Handler handler, std::string_view address = "127.0.0.1",
                      std::uint16_t port = 0);
  ~NameServer();

  std::uint16_t port() const { return port_; }
  std::vector<ReceivedQuery> received() const;
  std::vector<std::string> asked_names() const;  // of the queries for A

 private:
  void serve();
  void answer_datagram();
  void answer_connection();
  std::vector<std::string> handle(const std::string& bytes, bool by_tcp, std::uint16_t source_port);

  Handler handler_;
  sys::UniqueFd udp_;
  sys::UniqueFd tcp_;
  std::uint16_t port_ = 0;
  sys::StopSignal stop_;
  mutable std::mutex mutex_;
  std::vector<ReceivedQuery> received_;
  std::thread thread_;
};

// ---- messages

// Two bytes that point to the name of the question.
inline constexpr std::string_view kQuestionName{"\xC0\x0C", 2};

std::string name_bytes(std::string_view name);  // "a.b" as labels
std::string record(std::string_view name_bytes, std::uint16_t type, std::string_view data);
std::string a_record(std::string_view ipv4, std::string_view name_bytes = kQuestionName);
std::string aaaa_record(std::string_view ipv6, std::string_view name_bytes = kQuestionName);
std::string cname_record(std::string_view name_bytes, std::string_view target_bytes);

// The response to a query. `flags` are the low byte's response code and, for instance, 0x0200 for a
// truncated one.
std::string response_to(std::string_view query, const std::vector<std::string>& records,
                        std::uint16_t flags = 0);

}  // namespace gantry::dns
