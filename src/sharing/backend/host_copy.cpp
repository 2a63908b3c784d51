// SPDX-License-Identifier: Apache-2.0
#include "sharing/backend/host_copy.hpp"

#include "base/core/hash.hpp"
#include "base/sys/replace_file.hpp"
#include "container/driver_dir/current.hpp"
#include "sharing/policy/paths.hpp"

#include <fmt/format.h>

namespace gantry::backend {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;

}  // namespace

Result<std::string> path_for_engines(const sys::Host& host, const std::string& path) {
  if (host.is_live() || path.empty()) return path;
  GANTRY_TRY(const auto own, sys::Host::at("/"));
  GANTRY_TRY(const auto content, own.read(path, kMaxFileBytes));
  Hash hash;
  hash.add(content);
  const auto name = path.substr(path.rfind('/') + 1);
  const auto place = fmt::format("{}/{}/{}", policy::kFenceCopies, hash.text(), name);
  const auto known = host.info(place);
  if (!known.ok() || known->size != content.size())
    GANTRY_CHECK(sys::replace_file(host.outside(place), content, 0755));
  return driver_dir::simulated_engine_root(host) + place;
}

}  // namespace gantry::backend
