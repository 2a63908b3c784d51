// SPDX-License-Identifier: Apache-2.0
#include "base/core/base64.hpp"
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "base/sys/host.hpp"
#include "base/sys/replace_file.hpp"
#include "node/kubelet/checkpoint.hpp"
#include "support/fake_kubelet.hpp"

#include <fmt/format.h>

namespace gantry::test {
namespace {

std::uint32_t fnv32a(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

template <class Devices>
void write_entry(json::Writer& out, const std::string& uid, const std::string& name,
                 const std::string& resource, const Devices& what) {
  out.object([&] {
    out.member("PodUID", uid);
    out.member("ContainerName", name);
    out.member("ResourceName", resource);
    out.object("DeviceIDs", [&] {
      for (const auto& [node, ids] : what.ids) out.array(fmt::to_string(node), ids);
    });
    out.member("AllocResp", to_base64(what.answer));
  });
}

}  // namespace

void FakeKubelet::write_checkpoint() const {
  json::Writer entries;
  entries.array([&] {
    for (const auto& [uid, containers] : pods_)
      for (const auto& [name, resources] : containers)
        for (const auto& [resource, what] : resources)
          write_entry(entries, uid, name, resource, what);
  });
  json::Writer data;
  data.object([&] {
    data.raw_member("PodDeviceEntries", entries.text() == "[]" ? "null" : entries.text());
    data.object("RegisteredDevices", [&] {
      for (const auto& [resource, devices] : devices_) data.array(resource, devices.healthy);
    });
  });
  json::Writer file;
  file.object([&] {
    file.raw_member("Data", data.text());
    file.member("Checksum", fnv32a(data.text()));
  });
  static_cast<void>(
      sys::replace_file(fmt::format("{}/{}", options_.directory, kubelet::kCheckpointFile),
                        file.text(), 0600, sys::Durability::Volatile)
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
