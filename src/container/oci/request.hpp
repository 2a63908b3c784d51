// SPDX-License-Identifier: Apache-2.0
// What a container asks for, in every form that exists, and what of it the policy lets through.
#pragma once

#include "base/core/result.hpp"
#include "container/config/settings.hpp"
#include "container/oci/container.hpp"
#include "gpu/model/container_request.hpp"
#include "gpu/model/grant.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::oci {

using model::Grant;  // /run/gantry/grants/POD-UID/CONTAINER

// What the decision may ask while it is made, and only where it must.
struct RequestLookups {
  // NotFound: nothing was granted to this container of this pod.
  std::function<Result<Grant>(const PodContainer&)> grant;
  // The UUID of a device that was named in another way; "" when this machine has none.
  std::function<std::string(std::string_view)> uuid;
};

struct Decision {
  model::ContainerRequest request;    // what it gets; wants_nothing() when that is nothing
  std::vector<std::string> asked;     // who asked for what: "environment: NVIDIA_VISIBLE_DEVICES=0"
  std::vector<std::string> reasons;   // what was decided, and by which rule
  std::vector<std::string> warnings;  // what was asked and is not given, for the log
};

// Precedence: annotations, volume mounts where accepted, environment as the policy says. Invalid
// for a request that cannot be read: an annotation that names no CDI device, a capability that is
// none or not supported, an IMEX channel out of range.
Result<Decision> decide_request(const Container& container, const config::Settings& settings,
                                const RequestLookups& lookups);

}  // namespace gantry::oci
