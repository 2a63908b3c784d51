// SPDX-License-Identifier: Apache-2.0
// Writes labels to a file for the local source of node feature discovery.
#pragma once

#include "node/labels/labels.hpp"

namespace gantry::labels {

inline constexpr std::string_view kFeaturesFile =
    "/etc/kubernetes/node-feature-discovery/features.d/gfd";

// Replaces the file by rename, with mode 0644. The name of the temporary file starts with a dot, so
// that node feature discovery skips it.
Status write_features_file(const std::string& path, const Labels& labels);
// No error if the file does not exist.
Status remove_features_file(const std::string& path);

}  // namespace gantry::labels
