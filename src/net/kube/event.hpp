// SPDX-License-Identifier: Apache-2.0
// core/v1 Events: what people see in `kubectl describe`.
#pragma once

#include "base/core/result.hpp"
#include "net/kube/api.hpp"
#include "net/kube/client_config.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace gantry::kube {

std::string format_utc(std::int64_t unix_seconds);  // "2021-03-11T05:51:00Z"

// Cut where an event's or a condition's message must end: servers take 1024 bytes.
std::string truncate_message(std::string text);

enum class EventType : std::uint8_t { Normal, Warning };

struct Event {
  std::string kind = "Pod";  // of what it is about
  std::string name_space;    // "" for nodes: their events are in "default"
  std::string name;
  std::string uid;
  EventType type = EventType::Normal;
  std::string reason;   // "FailedScheduling": one word
  std::string message;  // cut as truncate_message() does
  std::string component = "gantry";
  std::string host;  // "" = left out
  std::int64_t at_unix_s = 0;
};

// `number` makes its name unique among those of the same second.
std::string to_json(const Event& event, std::uint64_t number);
std::string events_path(const Event& event);

// Writes them in a thread of its own, so that nobody waits for the server: a bounded queue (the
// oldest are dropped), and what was said of the same object in the last ten minutes is not said
// again.
class EventRecorder {
 public:
  using OnError = std::function<void(const Error&)>;
  explicit EventRecorder(ClientConfig access, OnError on_error = {});
  ~EventRecorder();  // what waits has two more seconds
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void write(Event event);  // at_unix_s 0: now

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::kube
