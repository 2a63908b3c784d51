// SPDX-License-Identifier: Apache-2.0
// Adds our libraries to an image's ld.so.cache. Works on bytes: no code of the image is executed,
// and all libraries of its old cache can still be found.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/container_edits.hpp"

#include <span>
#include <string>
#include <string_view>

namespace gantry::loader {

// `old_cache` is empty if the image has none. Our entries come before entries with the same name
// and machine. The image's entries with those names for newer processors (glibc-hwcaps, legacy
// capabilities) are removed, because a loader prefers them at any position. The image's other
// entries keep their order and hwcaps. Merging twice gives the same bytes. Corrupt if the old cache
// is damaged. `owned`: directories that belong to us. Old entries for them are removed: they are
// from an earlier start of this container, perhaps with another driver.
Result<std::string> merge_ld_cache(std::string_view old_cache,
                                   std::span<const model::LibraryEdit> libraries,
                                   std::span<const std::string> owned = {});

// Whether a loader would read these bytes; it ignores any other file in that place.
bool is_ld_cache(std::string_view bytes);

}  // namespace gantry::loader
