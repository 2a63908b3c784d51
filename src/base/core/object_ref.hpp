// SPDX-License-Identifier: Apache-2.0
// The identity of a Kubernetes object whose kind is known from the context.
#pragma once

#include <compare>
#include <string>

namespace gantry {

struct ObjectRef {
  std::string uid;
  std::string name_space;  // "" for objects without a namespace
  std::string name;
  auto operator<=>(const ObjectRef&) const = default;  // NOLINT(modernize-use-nullptr)
};
using PodRef = ObjectRef;

// "namespace/name"; "/name" for objects without a namespace.
inline std::string to_string(const ObjectRef& object) {
  return object.name_space + "/" + object.name;
}

}  // namespace gantry
