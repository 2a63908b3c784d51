// SPDX-License-Identifier: Apache-2.0
// The commands below `gantry cdi`: one line each here, one row each in the table of cdi.cpp.
#pragma once

#include "gantry/command.hpp"

namespace gantry::cli {}  // namespace gantry::cli
