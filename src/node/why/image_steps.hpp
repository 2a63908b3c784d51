// SPDX-License-Identifier: Apache-2.0
// `gantry why image`: would the programs of this image find this machine's GPUs? Each step is a
// finding of its own; they do not build upon each other, as a pod's steps do.
#pragma once

#include "cluster/explain/explanation.hpp"
#include "container/image/image.hpp"
#include "gpu/model/inventory.hpp"

#include <string>

namespace gantry::why {

// `shown`: the image as the user named it.
explain::Explanation why_image(const image::Image& image, const model::Inventory& machine,
                               const std::string& shown);

}  // namespace gantry::why
