// SPDX-License-Identifier: Apache-2.0
// A new agent replaces the old one without a gap. Kubelets up to 1.36 treat the end of an old
// stream as the end of the resource, even if a newer registration exists. So the old agent passes
// its connections to the new one, which has already registered. The new agent keeps them open,
// without using them, until the kubelet closes them.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "base/sys/unique_fd.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace gantry::kubelet {

// A connection of the kubelet to the plugin of one resource: lent by its owner, or taken over.
struct LentConnection {
  std::string resource;
  int fd = -1;
};
struct TakenConnection {
  std::string resource;
  sys::UniqueFd fd;
};

// Connections that only have to stay open. Data from them is read and dropped, so their resources
// must be registered again: the kubelet sends its calls to the new registration.
class IdleConnections {
 public:
  explicit IdleConnections(sys::Loop& loop);
  ~IdleConnections();
  IdleConnections(const IdleConnections&) = delete;
  IdleConnections& operator=(const IdleConnections&) = delete;

  void keep(std::vector<TakenConnection> connections);
  std::size_t count() const;
  std::vector<LentConnection> connections()
      const;  // still owned here; the next agent needs them too

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The old agent's side. Serves one client at a time, and only our own user or root.
class HandoverServer {
 public:
  struct Callbacks {
    std::function<std::vector<LentConnection>()> connections;  // the connections to hand over
    std::function<bool()> quiet;                               // whether no call is in progress
    // The new agent has the connections. This process must exit without sending anything more to
    // the kubelet.
    std::function<void()> given;
  };
  struct Options {
    std::chrono::milliseconds max_wait{3'000};  // for a quiet moment; after that, hands over anyway
  };

  HandoverServer(sys::Loop& loop, Callbacks callbacks);
  HandoverServer(sys::Loop& loop, Callbacks callbacks, const Options& options);
  ~HandoverServer();
  HandoverServer(const HandoverServer&) = delete;
  HandoverServer& operator=(const HandoverServer&) = delete;

  // Takes over the path by rename. The next agent does the same to us.
  Status listen(const std::string& path);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The new agent's side. `callback` is called once, from the loop, with the connections, with
// NotFound if no old agent listens, or with the error. Destroying the Takeover cancels it without a
// call.
class Takeover {
 public:
  using OnTaken = std::function<void(Result<std::vector<TakenConnection>> connections)>;
  Takeover(sys::Loop& loop, const std::string& path, std::chrono::milliseconds deadline,
           OnTaken callback);
  ~Takeover();
  Takeover(const Takeover&) = delete;
  Takeover& operator=(const Takeover&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gantry::kubelet
