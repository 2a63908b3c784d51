// SPDX-License-Identifier: Apache-2.0
// One step of a change. Each can be repeated: it first looks whether it is already done.
#pragma once

#include "vm/vgpu/change.hpp"

namespace gantry::vgpu {

Status run_step(const sys::Host& host, const Step& step, const Actions& actions,
                const ChangeOptions& options);

// Whether the vGPU exists with this type. An error if the driver does not say it.
Result<bool> vgpu_exists(const sys::Host& host, const VgpuSpec& spec);

}  // namespace gantry::vgpu
