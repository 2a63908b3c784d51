// SPDX-License-Identifier: Apache-2.0
// Follows all objects of one kind: lists them in pages, then watches, and begins anew when the
// server cannot go on from where we were. In a thread of its own. Objects are handed on as they
// come and not kept: only their names and uids are, so that twenty thousand nodes cost megabytes.
#pragma once

#include "base/core/result.hpp"
#include "base/json/document.hpp"
#include "net/kube/client_config.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace gantry::kube {

struct ObjectRef {
  std::string name_space;  // "" for what has none
  std::string name;
  std::string uid;
  bool operator==(const ObjectRef&) const = default;
};
ObjectRef ref_of(const json::Document& object);  // from its metadata

// Called in the informer's thread, one call at a time.
class ResourceEventHandler {
 public:
  virtual ~ResourceEventHandler() = default;
  // New, changed, or told again by a list: the same state may come any number of times. An object
  // that was made anew under its old name is a remove() of the old uid and then a set().
  virtual void set(const json::Document& object) = 0;
  // Also for what went away while we did not look: after a list everything that is not in it is
  // removed. Only what was set.
  virtual void remove(const ObjectRef& object) = 0;
  // After each whole list: what was set and not removed is what there was at that moment.
  virtual void listed() {}
  // Once for each time that something fails, with when it is tried again; for the log.
  virtual void on_error(const Error& error, std::chrono::milliseconds retry_in) {
    (void)error, (void)retry_in;
  }
};

struct InformerOptions {
  std::string path;            // "/api/v1/pods", "/api/v1/nodes"
  std::string field_selector;  // "spec.nodeName=node-1"
  std::string label_selector;
  // Others are read and not kept: the API cannot select by the beginning of a name.
  std::string name_prefix;
  std::chrono::milliseconds resync = std::chrono::minutes(30);  // a new list, whatever was watched
  std::chrono::milliseconds watch = std::chrono::minutes(5);    // then the server ends it
  std::chrono::milliseconds request = std::chrono::seconds(30);
  std::chrono::milliseconds initial_backoff{
      500};  // after a failure; doubled each time, with jitter
  std::chrono::milliseconds max_backoff = std::chrono::seconds(30);
  std::uint64_t seed = 0;  // of the jitter; 0: a random one
};

class Informer {
 public:
  // `follower` lives longer than this.
  Informer(ClientConfig access, InformerOptions options, ResourceEventHandler& follower);
  ~Informer();  // stop()
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  // Ends what is under way at once and waits for the thread; nothing is called after it.
  void stop();

  bool synced() const;                                  // a whole list has been handed on
  bool wait_synced(std::chrono::milliseconds at_most);  // false: not yet, or stopped
  // Since a whole list was handed on or the watch said something. While nothing happens this grows
  // to a minute or so: servers send bookmarks.
  std::chrono::milliseconds silence() const;

  struct Counts {
    std::uint64_t lists = 0;  // whole ones
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
