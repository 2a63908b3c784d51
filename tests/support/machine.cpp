// SPDX-License-Identifier: Apache-2.0
#include "support/machine.hpp"

#include "base/core/text.hpp"
#include "sim/machine/tree.hpp"
#include "support/paths.hpp"
#include "support/tree.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gantry::test {

namespace fs = std::filesystem;

namespace {

std::string libraries() {
  std::error_code ignored;
  for (const auto* name : {"libcuda.so", "libnvidia-ml.so", "nvidia-smi", "nvidia-cuda-mps-control",
                           "nvidia-cuda-mps-server"}) {
    if (!fs::exists(fs::path(built("lib/gantry/sim")) / name, ignored)) return "";
  }
  return built("lib/gantry/sim");
}

}  // namespace

bool Machine::has_libraries() {
  return !libraries().empty();
}

Machine::Machine(std::string_view name) {
  parent_ = temp_directory() + "/gantry-machine-XXXXXX";
  GANTRY_ASSERT(::mkdtemp(parent_.data()) != nullptr);
  GANTRY_ASSERT(::chmod(parent_.c_str(), 0755) == 0);
  parent_ = fs::canonical(parent_).string();
  root_ = parent_ + "/root";
  const auto machine = sim::load_machine(name);
  // If this fails, the error of create is the message.
  const auto created = sim::create(
      *machine, {.root = root_, .libraries = libraries(), .nodes = sim::DeviceNodes::Table});
  GANTRY_ASSERT(created->root == root_);
}

Machine::~Machine() {
  std::error_code ignored;
  fs::remove_all(parent_, ignored);
}

sys::Host Machine::host() const {
  return *sys::Host::at(root_);
}

std::string Machine::cuda_library() const {
  const auto marker = sim::read_marker(root_);
  return marker.ok() ? path(marker->cuda_library) : "";
}

Machine& Machine::file(std::string_view inside, std::string_view content) {
  const auto full = path(inside);
  fs::create_directories(fs::path(full).parent_path());
  fs::remove(full);
  std::ofstream out(full, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  GANTRY_ASSERT(out.good());
  return *this;
}

Machine& Machine::link(std::string_view inside, std::string_view target) {
  const auto full = path(inside);
  fs::create_directories(fs::path(full).parent_path());
  fs::remove(full);
  fs::create_symlink(target, full);
  return *this;
}

Machine& Machine::remove(std::string_view inside) {
  fs::remove_all(path(inside));
  if (!inside.starts_with("/dev/")) return *this;
  const auto table = *host().read("/dev.table");
  std::string rest;
  for (const auto line : lines(table)) {
    if (!line.starts_with(std::string(inside) + " ")) rest += std::string(line) + "\n";
  }
  return file("/dev.table", rest);
}

Machine& Machine::node(std::string_view line) {
  remove(line.substr(0, line.find(' ')));
  return file("/dev.table", *host().read("/dev.table") + std::string(line) + "\n");
}

}  // namespace gantry::test
