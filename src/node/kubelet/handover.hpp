// SPDX-License-Identifier: Apache-2.0
// A new agent takes the old one's place without a gap. Kubelets up to 1.36 take the end of an old
// stream for the end of the resource, even when a newer registration is there. So the old agent
// hands its connections to the new one, which has registered by then and keeps them open, unused,
// until the kubelet closes them.
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

// A kubelet's connection to the plugin of one resource: as lent by its owner, as taken over.
struct LentConnection {
  std::string resource;
  int fd = -1;
};
struct TakenConnection {
  std::string resource;
  sys::UniqueFd fd;
};

// Connections that only have to stay open. Kind comes through them is read and dropped, so they
// must be of resources that are registered anew: calls of the kubelet go there by now.
class IdleConnections {
 public:
  explicit IdleConnections(sys::Loop& loop);
  ~IdleConnections();
  IdleConnections(const IdleConnections&) = delete;
  IdleConnections& operator=(const IdleConnections&) = delete;

  void keep(std::vector<TakenConnection> connections);
  std::size_t count() const;
  std::vector<LentConnection> connections()
      const;  // still owned here; the next agent wants them, too

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The old agent's side. Answers one at a time, of our own user or root.
class HandoverServer {
 public:
  struct Callbacks {
    std::function<std::vector<LentConnection>()> connections;  // what to hand on
    std::function<bool()> quiet;                               // now is a good moment
    // The other one has them. This process should end, without another word to the kubelet.
    std::function<void()> given;
  };
  struct Options {
    std::chrono::milliseconds max_wait{3'000};  // for a good moment; then it is done all the same
  };

  HandoverServer(sys::Loop& loop, Callbacks callbacks);
  HandoverServer(sys::Loop& loop, Callbacks callbacks, const Options& options);
  ~HandoverServer();
  HandoverServer(const HandoverServer&) = delete;
  HandoverServer& operator=(const HandoverServer&) = delete;

  // Takes the path's place, by rename: the next agent does the same to us.
  Status listen(const std::string& path);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The new agent's side. `callback` is called once, from the loop: the connections, or NotFound when
// there is no old agent (none listens), or why it did not work. Ends, unanswered, with its owner.
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
