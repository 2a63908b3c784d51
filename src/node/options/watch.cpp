// SPDX-License-Identifier: Apache-2.0
#include "node/options/watch.hpp"

#include "base/sys/host.hpp"

namespace gantry::options {
namespace {

constexpr std::size_t kContentLimit = std::size_t{1} << 20;  // what a ConfigMap can hold

std::string content_of(const std::string& file) {
  const auto host = sys::Host::at("/");
  if (file.empty() || !host.ok()) return "";
  const auto text = host->read(file, kContentLimit);
  return text.ok() ? *text : "";
}

}  // namespace

Result<std::string> file_now(kube::Api& api, const Setting& setting) {
  // Version 0: whatever the server has at hand, so that many nodes asking cost it nothing.
  GANTRY_TRY(const auto node, api.get(kube::node_path(setting.node) + "?resourceVersion=0"));
  GANTRY_TRY(const auto names, names_in(setting.directory));
  GANTRY_TRY(const auto name,
             choose(setting, node["metadata"]["labels"][setting.label].string(), names));
  return name.empty() ? std::string() : setting.directory + "/" + name;
}

Watch::Watch(kube::Access access, Setting setting, std::string file, Ears ears,
             std::chrono::milliseconds every)
    : setting_(std::move(setting)),
      ears_(std::move(ears)),
      every_(every),
      file_(std::move(file)),
      content_(content_of(file_)),
      thread_([this, access = std::move(access)]() mutable { run(std::move(access)); }) {}

Watch::~Watch() {
  {
    const std::lock_guard hold(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watch::look(kube::Api& api) {
  auto file = file_now(api, setting_);
  if (!file.ok()) {
    if (said_ != file.error().text()) ears_.failed(said_ = file.error().text());
    return;
  }
  said_.clear();
  auto content = content_of(*file);
  if (*file == file_ && content == content_) return;
  file_ = *std::move(file);
  content_ = std::move(content);
  ears_.changed(file_);
}

void Watch::run(kube::Access access) {
  kube::Api api(std::move(access));
  std::unique_lock hold(mutex_);
  while (!wake_.wait_for(hold, every_, [this] { return ended_; })) {
    hold.unlock();
    look(api);
    hold.lock();
  }
}

}  // namespace gantry::options
