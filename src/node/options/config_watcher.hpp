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

// The configuration file of this node, or "" if it has none. Asks the API server for the node's
// label.
Result<std::string> current_config_file(kube::Api& api, const ConfigManagerSettings& setting);

// Checks the configuration of this node regularly, in its own thread, and calls `changed` in that
// thread when another file, or a file with other content, is chosen. On an error it calls `failed`
// once, and the node keeps its configuration.
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
