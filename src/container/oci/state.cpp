// SPDX-License-Identifier: Apache-2.0
#include "container/oci/state.hpp"

#include "base/json/document.hpp"

#include <fmt/format.h>

namespace gantry::oci {

Result<State> parse_state(std::string_view text) {
  if (text.size() > kMaxStateBytes) {
    return Error(Errc::Corrupt, "the container's state is too large");
  }
  GANTRY_TRY(const auto document,
             json::Document::parse(std::string(text), json::Encoding::Any).in("container state"));
  const auto word = [&](std::string_view key) { return document[key].string().value_or(""); };
  State state{
      .id = word("id"), .status = word("status"), .bundle = word("bundle"), .root = word("root")};
  state.pid = document["pid"].u64().value_or(0);
  if (state.bundle.empty()) state.bundle = word("bundlePath");
  if (state.bundle.empty()) {
    return Error(Errc::Invalid, "the container's state does not name a bundle");
  }
  return state;
}

std::string root_path(std::string_view bundle, std::string_view root) {
  if (root.starts_with('/')) return std::string(root);
  return fmt::format("{}/{}", bundle, root.empty() ? "rootfs" : root);
}

}  // namespace gantry::oci
