// SPDX-License-Identifier: Apache-2.0
// Precompiled for programs that have a command line: the common headers and CLI11.
#pragma once

#include "common_headers.hpp"

#include <CLI/CLI.hpp>
