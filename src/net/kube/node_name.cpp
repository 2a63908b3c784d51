// SPDX-License-Identifier: Apache-2.0
#include "net/kube/node_name.hpp"

#include "base/core/text.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>

namespace gantry::kube {

std::string node_name(const std::string& given) {
  if (!given.empty()) return given;
  if (const char* name = std::getenv("NODE_NAME"); name != nullptr && *name != '\0') return name;
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? to_lower(name.data()) : "";
}

}  // namespace gantry::kube
