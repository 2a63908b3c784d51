// SPDX-License-Identifier: Apache-2.0
// One line per command; main_program.cpp calls them all.
#pragma once

#include "gantry/command.hpp"

namespace gantry::cli {}  // namespace gantry::cli
