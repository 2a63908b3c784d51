// SPDX-License-Identifier: Apache-2.0
// Python frameworks in an image, and whether they were built with CUDA. Judged by their files: a
// framework of a stranger is never imported.
#pragma once

#include "container/image/root_files.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gantry::image {

struct Framework {
  std::string name;          // "PyTorch"
  std::string place;         // "/usr/lib/python3/dist-packages/torch"
  std::string version;       // "2.6.0+cu124"; "" if it is not known
  bool cuda = false;         // it was built with CUDA
  std::string cuda_version;  // that it was built with: "12.4"; "" if it is not known
  std::string other;         // what it was built for in place of CUDA: "ROCm"; "" for the CPU alone
  std::string remedy;        // the command that installs its CUDA build
};

// Directories of Python packages: the usual ones, and those that VIRTUAL_ENV, CONDA_PREFIX,
// PYTHONHOME, PYTHONPATH and PATH name.
std::vector<std::string> python_directories(const RootFiles& files,
                                            std::span<const std::string> env);

std::vector<Framework> find_frameworks(const RootFiles& files,
                                       std::span<const std::string> directories);

// A package's version by the name of its directory NAME-VERSION.dist-info; "" if it is not there.
std::string package_version(const RootFiles& files, const std::string& directory,
                            std::string_view name);

// The value of a variable of the environment; of two the first, as getenv() has it. nullopt if it
// is not set.
std::optional<std::string> variable(std::span<const std::string> env, std::string_view name);

// Absolute directories of a list such as PATH, without slashes at their ends, limited in number.
std::vector<std::string> path_list(std::string_view value);

}  // namespace gantry::image
