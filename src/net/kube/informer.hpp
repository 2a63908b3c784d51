// SPDX-License-Identifier: Apache-2.0
// Follows all objects of one kind in a separate thread: lists them in pages, then watches, and
// lists again if the server cannot continue the watch. Objects are passed to the handler and not
// stored. Only their names and uids are, so that twenty thousand nodes cost megabytes.
#pragma once

#include "base/core/object_ref.hpp"
#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "net/kube/client_config.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace gantry::kube {

ObjectRef object_ref(const json::Document& object);  // from its metadata

// Called in the informer's thread, one call at a time.
class ResourceEventHandler {
 public:
  virtual ~ResourceEventHandler() = default;
  // Called for a new or changed object, and again after a list: the same state may come several
  // times. If an object was created again under the same name, remove() comes for the old uid and
  // then set().
  virtual void set(const json::Document& object) = 0;
  // Called also for objects that were deleted while there was no watch: after a list, all objects
  // that are not in it. Called only for objects that were set.
  virtual void remove(const ObjectRef& object) = 0;
  // Called after each complete list: the objects that are set now are those that existed at that
  // moment.
  virtual void listed() {}
  // Called for each failure, with the time until the next attempt; for the log.
  virtual void on_error(const Error& error, std::chrono::milliseconds retry_in) {
    (void)error, (void)retry_in;
  }
};

struct InformerOptions {
  std::string path;            // "/api/v1/pods", "/api/v1/nodes"
  std::string field_selector;  // "spec.nodeName=node-1"
  std::string label_selector;
  // Other names are read and ignored: the API cannot select by a prefix of the name.
  std::string name_prefix;
  std::chrono::milliseconds resync =
      std::chrono::minutes(30);  // then a new list, even if the watch works
  std::chrono::milliseconds watch = std::chrono::minutes(5);  // then the server ends the watch
  std::chrono::milliseconds request = std::chrono::seconds(30);
  std::chrono::milliseconds initial_backoff{
      500};  // pause after a failure; doubled each time, with jitter
  std::chrono::milliseconds max_backoff = std::chrono::seconds(30);
  std::uint64_t seed = 0;  // of the jitter; 0: a random one
};

class Informer {
 public:
  // `follower` must outlive this object.
  Informer(ClientConfig access, InformerOptions options, ResourceEventHandler& follower);
  ~Informer();  // stop()
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  // Cancels the request under way and waits for the thread. No callback comes after it.
  void stop();

  bool synced() const;                                  // a complete list was passed to the handler
  bool wait_synced(std::chrono::milliseconds at_most);  // false: not yet, or stopped
  // The time since the last complete list or watch event. If nothing changes, it grows to about a
  // minute, because servers send bookmarks.
  std::chrono::milliseconds silence() const;

  struct Counts {
    std::uint64_t lists = 0;  // complete lists
    std::uint64_t watches = 0;
    std::uint64_t events = 0;
    std::uint64_t failures = 0;
    std::size_t objects = 0;
  };
  Counts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gantry::kube
