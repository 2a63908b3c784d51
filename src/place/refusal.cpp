// SPDX-License-Identifier: Apache-2.0
#include "place/cluster.hpp"

namespace gantry::place {

bool resolvable(Refusal refusal) {
  switch (refusal) {
    case Refusal::None:
    case Refusal::NoSharedGpus:
    case Refusal::TooBig:
    case Refusal::NoMatch:
    case Refusal::Unhealthy:
    case Refusal::Quota: return false;
    case Refusal::Memory:
    case Refusal::Cores:
    case Refusal::Slots:
    case Refusal::Exclusive: return true;
  }
  return false;
}

}  // namespace gantry::place
