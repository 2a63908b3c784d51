// SPDX-License-Identifier: Apache-2.0
#include "base/core/base64.hpp"
#include "base/json/document.hpp"
#include "base/sys/host.hpp"
#include "base/sys/replace_file.hpp"
#include "node/kubelet/checkpoint.hpp"
#include "support/fake_kubelet.hpp"

#include <fmt/format.h>

namespace gantry::test {
namespace {

void join(std::string& list, const std::string& element) {
  if (!list.empty()) list += ',';
  list += element;
}

template <class Range>
std::string quoted_list(const Range& texts) {
  std::string list;
  for (const auto& text : texts) join(list, json::quote(text));
  return fmt::format("[{}]", list);
}

std::uint32_t fnv32a(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

}  // namespace

void FakeKubelet::write_checkpoint() const {
  std::string entries;
  for (const auto& [uid, containers] : pods_) {
    for (const auto& [name, resources] : containers) {
      for (const auto& [resource, what] : resources) {
        std::string nodes;
        for (const auto& [node, ids] : what.ids)
          join(nodes, fmt::format("\"{}\":{}", node, quoted_list(ids)));
        join(
            entries,
            fmt::format(
                R"({{"PodUID":{},"ContainerName":{},"ResourceName":{},"DeviceIDs":{{{}}},"AllocResp":"{}"}})",
                json::quote(uid), json::quote(name), json::quote(resource), nodes,
                to_base64(what.answer)));
      }
    }
  }
  std::string registered;
  for (const auto& [resource, devices] : devices_) {
    join(registered, fmt::format("{}:{}", json::quote(resource), quoted_list(devices.healthy)));
  }
  const std::string data = fmt::format(R"({{"PodDeviceEntries":{},"RegisteredDevices":{{{}}}}})",
                                       entries.empty() ? "null" : "[" + entries + "]", registered);
  static_cast<void>(
      sys::replace_file(fmt::format("{}/{}", options_.directory, kubelet::kCheckpointFile),
                        fmt::format(R"({{"Data":{},"Checksum":{}}})", data, fnv32a(data)), 0600,
                        sys::Durability::Volatile)
          .ok());
}

Status FakeKubelet::read_checkpoint() {
  GANTRY_TRY(const auto host, sys::Host::at(options_.directory));
  auto text = host.read(fmt::format("/{}", kubelet::kCheckpointFile));
  if (!text.ok()) return {};  // a new node
  GANTRY_TRY(const auto document, json::Document::parse(*std::move(text)));
  pods_.clear();
  for (const auto entry : document["Data"]["PodDeviceEntries"]) {
    AllocatedDevices what;
    for (const auto node : entry["DeviceIDs"]) {
      const auto ids = node.strings();
      what.ids[std::atoi(node.key().c_str())] = {ids.begin(), ids.end()};
    }
    what.answer = from_base64(entry["AllocResp"].string().value_or("")).value_or("");
    pods_[*entry["PodUID"].string()][*entry["ContainerName"].string()]
         [*entry["ResourceName"].string()] = what;
  }
  // Known, but without devices until the plugin comes back.
  for (const auto resource : document["Data"]["RegisteredDevices"]) devices_[resource.key()];
  return {};
}

}  // namespace gantry::test
