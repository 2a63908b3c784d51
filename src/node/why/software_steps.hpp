// SPDX-License-Identifier: Apache-2.0
// Steps about the software of an image, the same for a container that runs and for an image that
// does not run yet. `scope` is the first part of a step's id: "container" or "image".
#pragma once

#include "cluster/explain/explanation.hpp"
#include "container/image/cuda_files.hpp"
#include "container/image/frameworks.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::why {

struct Software {
  std::vector<std::string> python_directories;
  std::vector<image::Framework> frameworks;
  std::vector<image::CudaRuntime> runtimes;  // the newest first
};
Software find_software(const image::RootFiles& files, std::span<const std::string> env);

// nullopt: the loader is glibc's.
std::optional<explain::Step> loader_step(std::string_view scope, const image::RootFiles& files);

// nullopt: the image has no framework that is known here.
std::optional<explain::Step> framework_step(std::string_view scope, const Software& software);

// nullopt: it has frameworks without CUDA alone, of which framework_step() says that.
// `program_names_cuda`: the container's program contains the name of libcuda.
std::optional<explain::Step> cuda_step(std::string_view scope, const Software& software,
                                       bool program_names_cuda);

}  // namespace gantry::why
