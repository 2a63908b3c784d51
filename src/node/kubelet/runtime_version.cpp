// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/runtime_version.hpp"

#include "base/core/text.hpp"
#include "net/grpc/protobuf.hpp"
#include "node/kubelet/decode_fields.hpp"

#include <optional>
#include <utility>

namespace gantry::kubelet {
namespace {

std::string request() {
  return grpc::ProtoWriter().text(1, "v1").take();
}

// Removes the number at the front and returns it.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && text[length] >= '0' && text[length] <= '9') ++length;
  const auto number = parse_u64(text.substr(0, length));
  text.remove_prefix(length);
  return number;
}

// "v1.7.24-3" -> 1, 7
std::optional<std::pair<std::uint64_t, std::uint64_t>> major_minor(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  const auto major = take_number(text);
  if (!major || !text.starts_with('.')) return std::nullopt;
  text.remove_prefix(1);
  const auto minor = take_number(text);
  if (!minor) return std::nullopt;
  return std::pair{*major, *minor};
}

}  // namespace

std::string encode(const RuntimeVersion& version) {
  return grpc::ProtoWriter()
      .text(1, "0.1.0")
      .text(2, version.name)
      .text(3, version.version)
      .text(4, "v1")
      .take();
}

Result<RuntimeVersion> decode_runtime_version(std::string_view bytes) {
  RuntimeVersion version;
  GANTRY_CHECK(grpc::each_field(bytes, [&](const ProtoField& field) -> Status {
    switch (field.number()) {
      case 2: return read(field, version.name);
      case 3: return read(field, version.version);
      default: return {};
    }
  }));
  return version;
}

bool supports_cdi_names(const RuntimeVersion& runtime) {
  const auto version = major_minor(runtime.version);
  if (!version) return false;
  if (runtime.name == "containerd")
    return *version >= std::pair<std::uint64_t, std::uint64_t>{2, 0};
  if (runtime.name == "cri-o") return *version >= std::pair<std::uint64_t, std::uint64_t>{1, 28};
  return false;
}

Result<RuntimeVersion> query_runtime_version(const std::string& socket,
                                             std::chrono::milliseconds deadline) {
  GANTRY_TRY(const std::string reply,
             grpc::call_once(socket, kRuntimeVersion, request(), deadline));
  return decode_runtime_version(reply);
}

void query_runtime_version(grpc::Client& client, std::chrono::milliseconds deadline,
                           std::function<void(const Result<RuntimeVersion>& version)> callback) {
  client.call(
      kRuntimeVersion, request(), deadline,
      [callback = std::move(callback)](const grpc::CallStatus& outcome, const std::string& reply) {
        callback(outcome.ok() ? decode_runtime_version(reply) : grpc::to_error(outcome));
      });
}

}  // namespace gantry::kubelet
