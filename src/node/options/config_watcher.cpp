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
      every_(every),
      file_(std::move(file)),
      content_(content_of(file_)),
      thread_([this, access = std::move(access)]() mutable { run(std::move(access)); }) {}

ConfigWatcher::~ConfigWatcher() {
  {
    const std::lock_guard hold(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void ConfigWatcher::check_once(kube::Api& api) {
  auto file = current_config_file(api, setting_);
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

void ConfigWatcher::run(kube::ClientConfig access) {
  kube::Api api(std::move(access));
  std::unique_lock hold(mutex_);
  while (!wake_.wait_for(hold, every_, [this] { return ended_; })) {
    hold.unlock();
    check_once(api);
    hold.lock();
  }
}

}  // namespace gantry::options
