// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/messages.hpp"

#include "net/grpc/protobuf.hpp"
#include "node/kubelet/decode_fields.hpp"

#include <algorithm>
#include <limits>

namespace gantry::kubelet {
namespace {

using grpc::ProtoWriter;
using model::ContainerAllocateResponse;
using model::DeviceNodeEdit;
using model::MountEdit;

std::string encode_strings(std::uint32_t field, const DeviceIds& strings) {
  ProtoWriter writer;
  for (const auto& one : strings) writer.add(field, one);
  return writer.take();
}

std::string encode_device(const ListedDevice& device) {
  ProtoWriter writer;
  writer.text(1, device.id).text(2, device.healthy ? kHealthy : "Unhealthy");
  if (device.numa_node) {
    // Topology{nodes: [NUMANode{ID}]}: also written for node 0, whose number is omitted.
    const auto node = ProtoWriter().number(1, *device.numa_node).take();
    writer.message(3, ProtoWriter().message(1, node).bytes());
  }
  return writer.take();
}

std::string encode_mount(const MountEdit& mount) {
  const bool read_only =
      std::find(mount.options.begin(), mount.options.end(), "ro") != mount.options.end();
  return ProtoWriter()
      .text(1, mount.container_path)
      .text(2, mount.host_path)
      .boolean(3, read_only)
      .take();
}

std::string encode_node(const DeviceNodeEdit& node) {
  return ProtoWriter()
      .text(1, node.path)
      .text(2, node.host_path.empty() ? node.path : node.host_path)
      .text(3, node.permissions)
      .take();
}

Result<MountEdit> decode_mount(std::string_view bytes) {
  MountEdit mount;
  mount.options.clear();
  bool read_only = false;
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    switch (field.number()) {
      case 1: return read(field, mount.container_path);
      case 2: return read(field, mount.host_path);
      case 3: return read(field, read_only);
      default: return {};
    }
  }));
  if (read_only) mount.options = {"ro"};
  return mount;
}

Result<DeviceNodeEdit> decode_node(std::string_view bytes) {
  DeviceNodeEdit node;
  node.permissions.clear();
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    switch (field.number()) {
      case 1: return read(field, node.path);
      case 2: return read(field, node.host_path);
      case 3: return read(field, node.permissions);
      default: return {};
    }
  }));
  return node;
}

Result<std::string> decode_cdi(std::string_view bytes) {
  std::string name;
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    if (field.number() == 1) return read(field, name);
    return {};
  }));
  return name;
}

Status read_entry(const ProtoField& field, std::map<std::string, std::string>& into) {
  GANTRY_TRY(const std::string_view bytes, field.message());
  GANTRY_TRY(auto entry, grpc::decode_map_entry(bytes));
  into[std::move(entry.key)] = std::move(entry.value);
  return {};
}

Result<DeviceIds> decode_strings(std::string_view bytes) {
  DeviceIds strings;
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    if (field.number() == 1) return read(field, strings);
    return {};
  }));
  return strings;
}

Result<PreferredRequest> decode_one_preferred(std::string_view bytes) {
  PreferredRequest request;
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    switch (field.number()) {
      case 1: return read(field, request.available);
      case 2: return read(field, request.must_include);
      case 3: {
        GANTRY_TRY(const std::int64_t size, field.integer());
        request.size = static_cast<int>(
            std::clamp<std::int64_t>(size, 0, std::numeric_limits<std::int32_t>::max()));
        return {};
      }
      default: return {};
    }
  }));
  return request;
}

}  // namespace

std::string encode(const PluginOptions& options) {
  return ProtoWriter()
      .boolean(1, options.pre_start_required)
      .boolean(2, options.preferred_allocation_available)
      .take();
}

std::string encode(const RegisterRequest& request) {
  return ProtoWriter()
      .text(1, request.version)
      .text(2, request.endpoint)
      .text(3, request.resource)
      .message(4, encode(request.options))
      .take();
}

std::string encode_list(const std::vector<ListedDevice>& devices) {
  ProtoWriter writer;
  for (const auto& device : devices) writer.message(1, encode_device(device));
  return writer.take();
}

std::string encode_preferred_answer(const std::vector<DeviceIds>& containers) {
  ProtoWriter writer;
  for (const auto& ids : containers) writer.message(1, encode_strings(1, ids));
  return writer.take();
}

std::string encode(const ContainerAllocateResponse& answer) {
  ProtoWriter writer;
  for (const auto& [name, value] : answer.env) writer.entry(1, name, value);
  for (const auto& mount : answer.mounts) writer.message(2, encode_mount(mount));
  for (const auto& node : answer.nodes) writer.message(3, encode_node(node));
  for (const auto& [name, value] : answer.annotations) writer.entry(4, name, value);
  for (const auto& name : answer.cdi_devices)
    writer.message(5, ProtoWriter().text(1, name).bytes());
  return writer.take();
}

std::string encode_allocate_answer(const std::vector<ContainerAllocateResponse>& containers) {
  ProtoWriter writer;
  for (const auto& answer : containers) writer.message(1, encode(answer));
  return writer.take();
}

Result<std::vector<PreferredRequest>> decode_preferred_request(std::string_view bytes) {
  return decode_each(bytes, decode_one_preferred);
}

Result<std::vector<DeviceIds>> decode_allocate_request(std::string_view bytes) {
  return decode_each(bytes, decode_strings);
}

Result<ContainerAllocateResponse> decode_container_answer(std::string_view bytes) {
  ContainerAllocateResponse answer;
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    switch (field.number()) {
      case 1: return read_entry(field, answer.env);
      case 2: return read(field, decode_mount, answer.mounts);
      case 3: return read(field, decode_node, answer.nodes);
      case 4: return read_entry(field, answer.annotations);
      case 5: return read(field, decode_cdi, answer.cdi_devices);
      default: return {};
    }
  }));
  return answer;
}

Result<DeviceIds> decode_pre_start(std::string_view bytes) {
  return decode_strings(bytes);
}

}  // namespace gantry::kubelet
