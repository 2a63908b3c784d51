// SPDX-License-Identifier: Apache-2.0
// Version 1 of the ledger, in which GPUs were known by their UUIDs.
#include "gpu/ownership/state_json_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gantry::ownership {
namespace {

struct FormerClaim {
  model::GpuUuid gpu;
  Claim claim;
};

Result<UnplacedGpu> former_gpu_from(json::Value object) {
  UnplacedGpu gpu;
  GANTRY_TRY(gpu.uuid.text, name_in(object, "gpu"));
  GANTRY_TRY(gpu.owner, owner_in(object, "owner"));
  GANTRY_TRY(gpu.use, use_in(object));
  return gpu;
}

Result<FormerClaim> former_claim_from(json::Value object) {
  FormerClaim former;
  GANTRY_TRY(former.gpu.text, name_in(object, "gpu"));
  GANTRY_TRY(former.claim.id, name_in(object, "id"));
  GANTRY_TRY(former.claim.owner, owner_in(object, "owner"));
  GANTRY_TRY(former.claim.part, name_in(object, "mig"));
  GANTRY_TRY(former.claim.what, name_in(object, "what"));
  return former;
}

}  // namespace

Result<OwnershipState> parse_former_state(json::Value document) {
  OwnershipState state;
  GANTRY_CHECK(read_list(document["gpus"], kMaxOwnedGpus, former_gpu_from, state.unplaced));
  std::vector<FormerClaim> claims;
  GANTRY_CHECK(read_list(document["claims"], kMaxClaims, former_claim_from, claims));
  for (auto& former : claims) {
    const auto holder =
        std::find_if(state.unplaced.begin(), state.unplaced.end(),
                     [&](const UnplacedGpu& gpu) { return gpu.uuid == former.gpu; });
    if (holder == state.unplaced.end())
      return corrupt_ledger(fmt::format("a claim names `{}`, which has no owner", former.gpu.text));
    holder->claims.push_back(std::move(former.claim));
  }
  return state;
}

}  // namespace gantry::ownership
