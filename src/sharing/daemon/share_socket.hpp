// SPDX-License-Identifier: Apache-2.0
// The socket to which the processes of a share attach (gpu/abi/fence.h). Every process of the
// container may connect. So no message is trusted, the daemon never waits for a peer that does not
// read, and no peer gets more than its part of the daemon's time.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/loop.hpp"
#include "sharing/daemon/attached_processes.hpp"
#include "sharing/daemon/background_closer.hpp"
#include "sharing/daemon/shared_pages.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

namespace gantry::daemon {

struct SocketLimits {
  std::size_t connections = 2 * FENCE_MAX_PROCESSES + 256;  // of a share
  std::size_t connections_per_process = 8;
  int reports_at_once = 32;                  // messages of one peer before the others are served
  int reports_per_heartbeat = 8'192;         // then that peer waits for the next heartbeat
  int reports_per_heartbeat_total = 32'768;  // the same for all peers of the share together
  int accepts_per_heartbeat = 512;
  int hellos_per_heartbeat = 32;   // each new process is recorded on disk, which takes time
  int reserved_descriptors = 128;  // a share that floods must leave these to others
  std::chrono::milliseconds heartbeat{100};
  std::chrono::milliseconds hello_timeout{5'000};
};

class ShareSocket {
 public:
  struct Callbacks {
    // Of a running process, except FENCE_REFUSED. `report.gpu` is one of the share's.
    std::function<void(std::uint32_t slot, const FenceReport& report)> report;
    // An allocation of a process, which may have ended since, did not fit.
    std::function<void()> refused = {};
    // True if this process may use the share; if empty, all may.
    std::function<bool(pid_t pid)> admits;
    // True if the memory of the share's processes is known, so that another may join; if empty, it
    // is known.
    std::function<bool()> ready = {};
  };

  // Creates the socket, and replaces one that a previous daemon left. Every user may connect: the
  // permissions of the directory decide who can reach it.
  static Result<std::unique_ptr<ShareSocket>> open(sys::Loop& loop, const std::string& path,
                                                   SharedPages& pages,
                                                   AttachedProcesses& attached_processes,
                                                   Callbacks callbacks, SocketLimits bounds = {});
  ~ShareSocket();
  ShareSocket(const ShareSocket&) = delete;
  ShareSocket& operator=(const ShareSocket&) = delete;

  std::size_t connections() const { return peers_.size(); }
  // Call every `bounds.heartbeat`: closes connections that never sent a hello, and serves the peers
  // again that had sent too much.
  void on_heartbeat();

 private:
  struct Peer;
  ShareSocket(sys::Loop& loop, std::string path, SharedPages& pages,
              AttachedProcesses& attached_processes, Callbacks callbacks, SocketLimits bounds);
  Status listen();
  void accept_some();
  void pause();
  bool has_room(int fd, pid_t pid) const;
  void accept_one(sys::UniqueFd socket, std::uint64_t before_ns);
  void refuse(sys::UniqueFd socket, FenceRefusal why);
  void on_readable(int fd);
  bool take(Peer& peer, const char* bytes, std::size_t size);
  bool handle_hello(Peer& peer, const FenceHello& hello);
  static void throttle(Peer& peer);
  void forget(int fd);

  sys::Loop& loop_;
  std::string path_;
  SharedPages& pages_;
  AttachedProcesses& attached_processes_;
  Callbacks callbacks_;
  SocketLimits bounds_;
  sys::UniqueFd listener_;
  sys::Loop::Watch accepting_;
  bool paused_ = false;  // accepts no connection before the next heartbeat
  int accepted_ = 0;     // since the last heartbeat
  int greeted_ = 0;      // since the last heartbeat
  int reports_ = 0;      // since the last heartbeat, of all peers
  std::unordered_map<int, std::unique_ptr<Peer>> peers_;  // by descriptor
  std::unordered_map<pid_t, std::size_t> of_process_;     // connections
  BackgroundCloser closer_;
};

}  // namespace gantry::daemon
