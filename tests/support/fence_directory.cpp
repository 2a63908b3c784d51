// SPDX-License-Identifier: Apache-2.0
#include "support/fence_directory.hpp"

#include "base/core/result.hpp"
#include "gpu/abi/fence.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace gantry::test {
namespace {

constexpr char kTemplate[] = "/tmp/fence-XXXXXX";
static_assert(sizeof kTemplate == sizeof FENCE_DIRECTORY);

std::string read_all(const std::string& file) {
  const std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace

FenceDirectory::FenceDirectory() : directory_(kTemplate) {
  GANTRY_ASSERT(::mkdtemp(directory_.data()) != nullptr);
}

FenceDirectory::~FenceDirectory() {
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

void FenceDirectory::link(std::string_view name, const std::string& file) const {
  std::filesystem::create_symlink(file, path(name));
}

std::string FenceDirectory::install(const std::string& library, std::string_view name) const {
  auto bytes = read_all(library);
  constexpr std::string_view kUsual = FENCE_DIRECTORY;
  int places = 0;
  for (auto at = bytes.find(kUsual); at != std::string::npos; at = bytes.find(kUsual, at + 1)) {
    bytes.replace(at, kUsual.size(), directory_);
    ++places;
  }
  GANTRY_ASSERT(places > 0);
  auto copy = path(name);
  std::ofstream(copy, std::ios::binary) << bytes;
  return copy;
}

}  // namespace gantry::test
