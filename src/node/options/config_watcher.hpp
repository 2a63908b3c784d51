// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "net/kube/api.hpp"
#include "node/options/config_choice.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace gantry::options {

// The file that is this node's now, "" for none; asks the API server for the node's label.
Result<std::string> current_config_file(kube::Api& api, const ConfigManagerSettings& setting);

// Looks again and again, in a thread of its own, and calls `changed` there when another file, or
// the same with other content, is this node's. What cannot be read, or names nothing, is said once
// by `failed`, and the node stays with what it has.
class ConfigWatcher {
 public:
  struct Callbacks {
    std::function<void(const std::string& file)> changed;
    std::function<void(const std::string& why)> failed;
  };
  ConfigWatcher(kube::ClientConfig access, ConfigManagerSettings setting, std::string file,
                Callbacks callbacks, std::chrono::milliseconds every = std::chrono::seconds(10));
  ~ConfigWatcher();
  ConfigWatcher(const ConfigWatcher&) = delete;
  ConfigWatcher& operator=(const ConfigWatcher&) = delete;

 private:
  void check_once(kube::Api& api);
  void run(kube::ClientConfig access);

  const ConfigManagerSettings setting_;
  const Callbacks callbacks_;
  const std::chrono::milliseconds every_;
  std::string file_;
  std::string content_;
  std::string last_failure_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace gantry::options
