// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/containerd_config.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::doctor {
namespace {

constexpr std::array kMainFiles{"/etc/containerd/config.toml",
                                "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
                                "/var/lib/rancher/rke2/agent/etc/containerd/config.toml"};

// The names of the CRI plugin in configuration versions 1, 2 and 3.
constexpr std::string_view kPlugin1 = "cri";
constexpr std::string_view kPlugin2 = "io.containerd.grpc.v1.cri";
constexpr std::string_view kPlugin3 = "io.containerd.cri.v1.runtime";

ContainerdFile read_file(const Facts& f, const std::string& path) {
  ContainerdFile file{path, {}, ""};
  auto parsed = parse_toml(f.host().read(path).value_or(""));
  if (parsed.ok()) {
    file.document = *std::move(parsed);
  } else {
    file.error = parsed.error().text();
  }
  return file;
}

void add_imports(const Facts& f, std::vector<ContainerdFile>& files) {
  const auto imports = files.front().document.at("imports").items();
  for (const auto& item : imports) {
    const auto slash = item.text().rfind('/');
    if (slash == std::string::npos || files.size() > 64) continue;
    const auto directory = item.text().substr(0, slash);
    const auto names = f.host().list(directory);
    if (!names.ok()) continue;
    for (const auto& name : *names) {
      if (glob_match(item.text().substr(slash + 1), name)) {
        files.push_back(read_file(f, fmt::format("{}/{}", directory, name)));
      }
    }
  }
}

void merge(const ContainerdFile& file, Containerd& result) {
  for (const auto& item : file.document.at("disabled_plugins").items()) {
    if (item.text() == "cri" || item.text() == kPlugin2) result.cri_disabled = true;
  }
  const auto& plugins = file.document.at("plugins");
  for (const auto key : {kPlugin1, kPlugin2, kPlugin3}) {
    if (!plugins.has(key)) continue;
    const bool belongs = (key == kPlugin3) == (result.version >= 3);
    if (!belongs) result.wrong_key = key;
    const auto& cri = plugins.at(key);
    const auto& containerd = cri.at("containerd");
    if (!containerd.at("default_runtime_name").empty()) {
      result.default_runtime = containerd.at("default_runtime_name").text();
    }
    if (!cri.at("enable_cdi").empty()) result.cdi = cri.at("enable_cdi").is_true();
    for (const auto& [name, runtime] : containerd.at("runtimes").members()) {
      const auto& options = runtime.at("options");
      if (name == "nvidia") {
        result.has_nvidia = true;
        result.nvidia_binary = options.at("BinaryName").text();
      }
      if ((name == "runc" || name == result.default_runtime) && options.has("SystemdCgroup")) {
        result.systemd_cgroup = options.at("SystemdCgroup").text();
      }
    }
  }
}

}  // namespace

Containerd read_containerd(const Facts& f) {
  Containerd result;
  result.installed = f.installed("containerd");
  for (std::string_view path : kMainFiles) {
    if (!f.host().exists(path)) continue;
    result.installed = true;
    result.files.push_back(read_file(f, std::string(path)));
    break;
  }
  if (result.files.empty()) return result;
  const auto version = parse_u64(result.files.front().document.at("version").text());
  result.version = version && *version < 100 ? static_cast<int>(*version) : 1;
  result.cdi = result.version >= 3;
  add_imports(f, result.files);
  for (const auto& file : result.files) merge(file, result);
  return result;
}

}  // namespace gantry::doctor
