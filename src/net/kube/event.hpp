// SPDX-License-Identifier: Apache-2.0
// core/v1 Events, which `kubectl describe` shows.
#pragma once

#include "base/core/object_ref.hpp"
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

// Truncates the message of an event or a condition to the 1024 bytes that servers accept.
std::string truncate_message(std::string text);

enum class EventType : std::uint8_t { Normal, Warning };

struct Event {
  std::string kind = "Pod";  // of the object it is about
  ObjectRef object;          // without a namespace for nodes: their events are in "default"
  EventType type = EventType::Normal;
  std::string reason;   // "FailedScheduling": one word
  std::string message;  // truncated by truncate_message()
  std::string component = "gantry";
  std::string host;  // "" = omitted
  std::int64_t at_unix_s = 0;
};

// `number` makes its name unique among the events of the same second.
std::string to_json(const Event& event, std::uint64_t number);
std::string events_path(const Event& event);

// Writes events in a separate thread, so callers never wait for the server. The queue is bounded
// and drops the oldest events. An event that repeats one of the last ten minutes for the same
// object is not written.
class EventRecorder {
 public:
  using OnError = std::function<void(const Error&)>;
  explicit EventRecorder(ClientConfig access, OnError on_error = {});
  ~EventRecorder();  // gives waiting events two more seconds
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void write(Event event);  // at_unix_s 0: now

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::kube
