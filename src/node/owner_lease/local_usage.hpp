// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "gpu/model/pci_address.hpp"
#include "gpu/ownership/owner_change.hpp"
#include "gpu/ownership/ownership_store.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gantry::owner_lease {

// Finds the users of a GPU on the machine itself: processes with its device nodes open,
// shares, grants of pods, and the kubelet's checkpoint. May block for seconds: never call it on the
// agent's loop.
//
// `withdrawn` is true: without an agent the kubelet gives the GPU to no new pod. What an old pod
// has is in the checkpoint. Processes of the programs in `yielding` do not count: see LeaseOptions.
// With `parts`: only the users of the instances that go.
using MaybeParts = std::optional<ownership::ChangedParts>;
Result<ownership::GpuUsage> local_usage(const sys::Host& host, const model::PciAddress& gpu,
                                        std::span<const std::string> yielding = {},
                                        const MaybeParts& parts = {});

// The UUID of a GPU, from the driver or else from the ledger; empty if neither knows it.
model::GpuUuid known_uuid(const sys::Host& host, const model::PciAddress& gpu);

// The parts that an agent does not know from its own work: processes and named shares, also those
// of a share daemon that does not run.
Result<std::vector<std::string>> processes_and_shares(const sys::Host& host,
                                                      const model::PciAddress& gpu,
                                                      std::span<const std::string> yielding = {},
                                                      const MaybeParts& parts = {});

}  // namespace gantry::owner_lease
