// SPDX-License-Identifier: Apache-2.0
#include "net/kube/kubeconfig_internal.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto access = gantry::kube::parse_kubeconfig(
      text, "/k", "", [](const std::string&) { return gantry::Result<std::string>("x"); });
  GANTRY_ASSERT(!access.ok() || !access->server.endpoint.host.empty());
  return 0;
}
