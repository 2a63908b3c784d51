// SPDX-License-Identifier: Apache-2.0
// Labels as a file for node feature discovery's local source.
#pragma once

#include "node/labels/labels.hpp"

namespace gantry::labels {

inline constexpr std::string_view kFeaturesFile =
    "/etc/kubernetes/node-feature-discovery/features.d/gfd";

// By rename, mode 0644. The temporary file's name starts with a dot, which its reader skips.
Status write_features_file(const std::string& path, const Labels& labels);
// A file that is not there is fine.
Status remove_features_file(const std::string& path);

}  // namespace gantry::labels
