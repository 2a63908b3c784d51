// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/kube/api.hpp"
#include "node/options/choice.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace gantry::options {

// The file that is this node's now, "" for none; asks the API server for the node's label.
Result<std::string> file_now(kube::Api& api, const Setting& setting);

// Looks again and again, in a thread of its own, and calls `changed` there when another file, or
// the same with other content, is this node's. What cannot be read, or names nothing, is said once
// by `failed`, and the node stays with what it has.
class Watch {
 public:
  struct Ears {
    std::function<void(const std::string& file)> changed;
    std::function<void(const std::string& why)> failed;
  };
  Watch(kube::Access access, Setting setting, std::string file, Ears ears,
        std::chrono::milliseconds every = std::chrono::seconds(10));
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void look(kube::Api& api);
  void run(kube::Access access);

  const Setting setting_;
  const Ears ears_;
  const std::chrono::milliseconds every_;
  std::string file_;
  std::string content_;
  std::string said_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace gantry::options
