// SPDX-License-Identifier: Apache-2.0
// Our libraries into an image's ld.so.cache, as bytes: nothing of the image is executed, everything
// it had in its cache stays findable.
#pragma once

#include "base/core/result.hpp"
#include "gpu/model/container_edits.hpp"

#include <span>
#include <string>
#include <string_view>

namespace gantry::loader {

// `old_cache` is empty when the image has none. Ours come before entries of the same name and
// machine; the image's copies for better processors (glibc-hwcaps, legacy capabilities) of those
// names go, because a loader prefers them wherever they stand. The image's other entries keep their
// order and hwcaps. Merging twice gives the same bytes. Corrupt when the old cache is damaged.
// `owned`: directories that are ours as a whole; what the old cache says of them is of an earlier
// start of this container, perhaps with another driver, and goes.
Result<std::string> merge_ld_cache(std::string_view old_cache,
                                   std::span<const model::LibraryEdit> libraries,
                                   std::span<const std::string> owned = {});

// Whether a loader would look into these bytes at all: another file in its place it ignores.
bool is_ld_cache(std::string_view bytes);

}  // namespace gantry::loader
