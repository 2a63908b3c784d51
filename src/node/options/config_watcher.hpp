// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/sys/background_task.hpp"
#include "net/kube/api.hpp"
#include "node/options/config_choice.hpp"

#include <chrono>
#include <functional>
#include <string>

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
  ConfigWatcher(const ConfigWatcher&) = delete;
  ConfigWatcher& operator=(const ConfigWatcher&) = delete;

 private:
  void check_once();

  const ConfigManagerSettings setting_;
  const Callbacks callbacks_;
  kube::Api api_;
  std::string file_;
  std::string content_;
  std::string last_failure_;
  sys::BackgroundTask task_;  // last: it uses everything above
};

}  // namespace gantry::options
