// SPDX-License-Identifier: Apache-2.0
#include "node/options/config_watcher.hpp"

#include "base/sys/host.hpp"

namespace gantry::options {
namespace {

constexpr std::size_t kContentLimit = std::size_t{1} << 20;  // the maximum size of a ConfigMap

std::string content_of(const std::string& file) {
  const auto host = sys::Host::at("/");
  if (file.empty() || !host.ok()) return "";
  const auto text = host->read(file, kContentLimit);
  return text.ok() ? *text : "";
}

}  // namespace

Result<std::string> current_config_file(kube::Api& api, const ConfigManagerSettings& setting) {
  // Version 0: from the server's cache, so that requests of many nodes are cheap.
  GANTRY_TRY(const auto node, api.get(kube::node_path(setting.node) + "?resourceVersion=0"));
  GANTRY_TRY(const auto names, list_configs(setting.directory));
  GANTRY_TRY(const auto name,
             choose_config(setting, node["metadata"]["labels"][setting.label].string(), names));
  return name.empty() ? std::string() : setting.directory + "/" + name;
}

ConfigWatcher::ConfigWatcher(kube::ClientConfig access, ConfigManagerSettings setting,
                             std::string file, Callbacks callbacks, std::chrono::milliseconds every)
    : setting_(std::move(setting)),
      callbacks_(std::move(callbacks)),
      api_(std::move(access)),
      file_(std::move(file)),
      content_(content_of(file_)),
      task_({.name = "node config",
             .period = every,
             .first_run = sys::BackgroundTask::FirstRun::AfterPeriod},
            [this](const std::stop_token&) -> Status {
              check_once();
              return {};
            }) {
  task_.start();
}

void ConfigWatcher::check_once() {
  auto file = current_config_file(api_, setting_);
  if (!file.ok()) {
    if (last_failure_ != file.error().text())
      callbacks_.failed(last_failure_ = file.error().text());
    return;
  }
  last_failure_.clear();
  auto content = content_of(*file);
  if (*file == file_ && content == content_) return;
  file_ = *std::move(file);
  content_ = std::move(content);
  callbacks_.changed(file_);
}

}  // namespace gantry::options
