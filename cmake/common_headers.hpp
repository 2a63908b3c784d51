// SPDX-License-Identifier: Apache-2.0
// Precompiled once for all modules: headers that nearly every file reads. A file still includes what
// it uses: the preset `single` builds without this.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
