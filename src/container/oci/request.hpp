// SPDX-License-Identifier: Apache-2.0
// Reads the devices that a container requests, in every supported form, and applies the policy.
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

// Lookups for decide_request(), called only if they are needed.
struct RequestLookups {
  // NotFound: nothing was granted to this container of this pod.
  std::function<Result<Grant>(const PodContainer&)> grant;
  // The UUID of a device that was named in another way; "" if this machine has no such device.
  std::function<std::string(std::string_view)> uuid;
};

struct Decision {
  model::ContainerRequest request;    // what the container gets; wants_nothing() if nothing
  std::vector<std::string> asked;     // source and request: "environment: NVIDIA_VISIBLE_DEVICES=0"
  std::vector<std::string> reasons;   // what was decided, and by which rule
  std::vector<std::string> warnings;  // requests that were not granted, for the log
};

// Precedence: annotations, volume mounts if accepted, environment if the policy allows it. Invalid
// for a malformed request: an annotation that does not name a CDI device, an unknown or unsupported
// capability, an IMEX channel out of range.
Result<Decision> decide_request(const Container& container, const config::Settings& settings,
                                const RequestLookups& lookups);

}  // namespace gantry::oci
