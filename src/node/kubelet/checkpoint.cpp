// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/checkpoint.hpp"

#include "base/core/base64.hpp"
#include "base/json/document.hpp"
#include "base/sys/descriptor.hpp"
#include "base/sys/unique_fd.hpp"
#include "node/kubelet/messages.hpp"

#include <fcntl.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace gantry::kubelet {
namespace {

using json::Kind;
using json::Value;
using model::DeviceAllocation;

Error other_shape(std::string_view what) {
  return {Errc::Corrupt, fmt::format("the kubelet's checkpoint: {}", what)};
}

std::vector<std::string> sorted_once(std::vector<std::string> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// {"0": ["GPU-a"], "-1": ["GPU-b"]} by NUMA node; kubelets before 1.20 wrote ["GPU-a", "GPU-b"].
Result<std::vector<std::string>> ids_in(const Value& value) {
  if (value.is(Kind::Array)) return sorted_once(value.strings());
  if (value.is(Kind::Null)) return std::vector<std::string>{};
  if (!value.is(Kind::Object)) return other_shape("DeviceIDs is neither a list nor a map of lists");
  std::vector<std::string> ids;
  for (const Value node : value) {
    const auto some = node.strings();
    ids.insert(ids.end(), some.begin(), some.end());
  }
  return sorted_once(std::move(ids));
}

Result<DeviceAllocation> holder_in(const Value& entry) {
  const auto uid = entry["PodUID"].string();
  const auto container = entry["ContainerName"].string();
  const auto resource = entry["ResourceName"].string();
  if (!uid || !container || !resource) {
    return other_shape("an entry has no PodUID, ContainerName or ResourceName");
  }
  GANTRY_TRY(auto ids, ids_in(entry["DeviceIDs"]));
  return DeviceAllocation{
      .pod = {.uid = *uid}, .container = *container, .resource = *resource, .ids = std::move(ids)};
}

}  // namespace

Result<Checkpoint> parse_checkpoint(std::string text) {
  GANTRY_TRY(const auto document,
             json::Document::parse(std::move(text)).in("the kubelet's checkpoint"));
  const Value data = document["Data"];
  if (!data.is(Kind::Object)) return other_shape("Data is missing");
  Checkpoint checkpoint;
  const Value entries = data["PodDeviceEntries"];  // null if nothing is allocated
  if (entries && !entries.is(Kind::Array) && !entries.is(Kind::Null)) {
    return other_shape("PodDeviceEntries is not a list");
  }
  if (entries.is(Kind::Array)) {
    for (const Value entry : entries) {
      GANTRY_TRY(auto holder, holder_in(entry));
      if (auto answer = entry["AllocResp"].string(); answer && !answer->empty())
        checkpoint.answers.emplace(holder, *std::move(answer));
      checkpoint.holders.push_back(std::move(holder));
    }
  }
  const Value registered = data["RegisteredDevices"];
  if (registered.is(Kind::Object)) {
    for (const Value resource : registered) {
      checkpoint.devices[resource.key()] = sorted_once(resource.strings());
    }
  }
  std::sort(checkpoint.holders.begin(), checkpoint.holders.end());
  return checkpoint;
}

Result<Checkpoint> read_checkpoint(const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kCheckpointFile);
  const sys::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return Error::sys(errno, fmt::format("open {}", path));
  GANTRY_TRY(std::string text, sys::read_regular(fd.get(), json::kSizeLimit, path));
  return parse_checkpoint(std::move(text));
}

Result<model::ContainerAllocateResponse> stored_answer(const Checkpoint& checkpoint,
                                                       const DeviceAllocation& holder) {
  const auto found = checkpoint.answers.find(holder);
  if (found == checkpoint.answers.end()) return Error(Errc::NotFound, "no stored answer");
  GANTRY_TRY(const auto bytes, from_base64(found->second).in("reading a stored answer"));
  return decode_container_answer(bytes).in("reading a stored answer");
}

std::vector<DeviceAllocation> holders_of(const Checkpoint& checkpoint, std::string_view resource,
                                         const std::vector<std::string>& ids) {
  const auto wanted = sorted_once(ids);
  std::vector<DeviceAllocation> found;
  for (const auto& holder : checkpoint.holders) {
    if (holder.resource == resource && holder.ids == wanted) found.push_back(holder);
  }
  return found;
}

}  // namespace gantry::kubelet
