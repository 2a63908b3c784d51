// SPDX-License-Identifier: Apache-2.0
// Reads and changes MIG for the requests of mig_nvml. The calls may hang or crash, so only
// gantry-nvml makes them.
#pragma once

#include "gpu/mig_nvml/messages.hpp"
#include "gpu/nvml/nvml.hpp"

namespace gantry::nvml {

// Every GPU of the machine. An error if an instance cannot be read: a list that lacks one would
// make a plan that destroys or covers it.
Result<mig_nvml::MigMachine> read_mig_machine(const Nvml& nvml);

// Does what the request asks. NVML was initialised.
mig_nvml::MigAnswer answer_mig(const Nvml& nvml, const mig_nvml::MigRequest& request);

// Answers requests on this socket until the other end closes it.
int serve_mig(const Nvml& nvml, int socket);

// Answers each request with this error.
int serve_no_mig(const Error& why, int socket);

}  // namespace gantry::nvml
