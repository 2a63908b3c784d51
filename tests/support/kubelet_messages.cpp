// SPDX-License-Identifier: Apache-2.0
#include "support/kubelet_messages.hpp"

#include "net/grpc/protobuf.hpp"
#include "node/kubelet/decode_fields.hpp"

#include <limits>
#include <map>
#include <utility>

namespace gantry::kubelet {
namespace {

using grpc::ProtoWriter;
using model::ContainerAllocateResponse;
using model::DeviceAllocation;

std::string encode_strings(std::uint32_t field, const DeviceIds& strings) {
  ProtoWriter writer;
  for (const auto& one : strings) writer.add(field, one);
  return writer.take();
}

template <class Range>
std::string encode_devices(const std::string& resource, const Range& ids) {
  ProtoWriter writer;
  writer.text(1, resource);
  for (const auto& id : ids) writer.add(2, id);
  return writer.take();
}

Result<std::int64_t> decode_numa_node(std::string_view bytes) {
  std::int64_t id = 0;
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    if (field.number() == 1) return read(field, id);
    return {};
  }));
  return id;
}

Result<std::optional<int>> decode_topology(std::string_view bytes) {
  GANTRY_TRY(const auto nodes, decode_each(bytes, decode_numa_node));
  if (nodes.empty() || nodes[0] < 0 || nodes[0] > std::numeric_limits<int>::max()) {
    return std::optional<int>();
  }
  return std::optional<int>(static_cast<int>(nodes[0]));
}

Result<ListedDevice> decode_device(std::string_view bytes) {
  ListedDevice device;
  device.healthy = false;
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    switch (field.number()) {
      case 1: return read(field, device.id);
      case 2: {
        GANTRY_TRY(const std::string health, field.text());
        device.healthy = health == kHealthy;
        return {};
      }
      case 3: {
        GANTRY_TRY(const std::string_view topology, field.message());
        GANTRY_TRY(device.numa_node, decode_topology(topology));
        return {};
      }
      default: return {};
    }
  }));
  return device;
}

}  // namespace

std::string encode_preferred_request(const std::vector<PreferredRequest>& containers) {
  ProtoWriter writer;
  for (const auto& container : containers) {
    writer.message(1, encode_strings(1, container.available) +
                          encode_strings(2, container.must_include) +
                          ProtoWriter().number(3, container.size).bytes());
  }
  return writer.take();
}

std::string encode_allocate_request(const std::vector<DeviceIds>& containers) {
  ProtoWriter writer;
  for (const auto& ids : containers) writer.message(1, encode_strings(1, ids));
  return writer.take();
}

std::string encode_pre_start(const DeviceIds& ids) {
  return encode_strings(1, ids);
}

std::string encode_pod_resources(const std::vector<DeviceAllocation>& holders) {
  // Pod, then container, then its devices.
  using Pod = std::pair<std::string, std::string>;
  std::map<Pod, std::map<std::string, std::string>> pods;
  for (const auto& holder : holders) {
    pods[{holder.pod.name_space, holder.pod.name}][holder.container] +=
        ProtoWriter().message(2, encode_devices(holder.resource, holder.ids)).bytes();
  }
  ProtoWriter writer;
  for (const auto& [pod, containers] : pods) {
    ProtoWriter one;
    one.text(1, pod.second).text(2, pod.first);
    for (const auto& [name, devices] : containers) {
      one.message(3, ProtoWriter().text(1, name).bytes() + devices);
    }
    writer.message(1, one.bytes());
  }
  return writer.take();
}

std::string encode_allocatable(const Allocatable& allocatable) {
  ProtoWriter writer;
  for (const auto& [resource, ids] : allocatable) writer.message(1, encode_devices(resource, ids));
  return writer.take();
}

Result<PluginOptions> decode_options(std::string_view bytes) {
  PluginOptions options;
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    switch (field.number()) {
      case 1: return read(field, options.pre_start_required);
      case 2: return read(field, options.preferred_allocation_available);
      default: return {};
    }
  }));
  return options;
}

Result<RegisterRequest> decode_register(std::string_view bytes) {
  RegisterRequest request;
  request.version.clear();
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    switch (field.number()) {
      case 1: return read(field, request.version);
      case 2: return read(field, request.endpoint);
      case 3: return read(field, request.resource);
      case 4: {
        GANTRY_TRY(const std::string_view options, field.message());
        GANTRY_TRY(request.options, decode_options(options));
        return {};
      }
      default: return {};
    }
  }));
  return request;
}

Result<std::vector<ListedDevice>> decode_list(std::string_view bytes) {
  return decode_each(bytes, decode_device);
}

Result<std::vector<DeviceIds>> decode_preferred_answer(std::string_view bytes) {
  return decode_each(bytes, decode_pre_start);
}

Result<std::vector<ContainerAllocateResponse>> decode_allocate_answer(std::string_view bytes) {
  return decode_each(bytes, decode_container_answer);
}

}  // namespace gantry::kubelet
