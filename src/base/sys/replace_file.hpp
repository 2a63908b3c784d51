// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/result.hpp"

#include <string>
#include <string_view>

namespace gantry::sys {

enum class Durability : std::uint8_t { Synced, Volatile };  // Volatile: for tmpfs such as /run

// Writes a temporary file in the same directory and renames it: readers see the old content or the
// new, never a part. Creates missing parent directories (0755). On failure the old file stays and
// the temporary file is removed.
Status replace_file(const std::string& path, std::string_view content, unsigned mode = 0644,
                    Durability durability = Durability::Synced);

// The same for a file in a directory of drop-ins, `drop_ins`, of which a program reads every file,
// hidden ones included: the temporary file is next to that directory, so a crash leaves nothing in
// it. If the directory is a mount of its own, so that nothing can be renamed into it from there,
// the temporary file is inside.
Status replace_drop_in(const std::string& drop_ins, const std::string& path,
                       std::string_view content, unsigned mode = 0644);

}  // namespace gantry::sys
