// SPDX-License-Identifier: Apache-2.0
#include "support/tree.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gantry::test {

namespace fs = std::filesystem;

std::string temp_directory() {
  struct statvfs memory {};
  const bool usable = ::statvfs("/dev/shm", &memory) == 0 && (memory.f_flag & ST_NOEXEC) == 0 &&
                      ::access("/dev/shm", W_OK) == 0;
  return usable ? std::string("/dev/shm") : fs::temp_directory_path().string();
}

Tree::Tree() {
  root_ = temp_directory() + "/gantry-tree-XXXXXX";
  GANTRY_ASSERT(::mkdtemp(root_.data()) != nullptr);
  GANTRY_ASSERT(::chmod(root_.c_str(), 0755) == 0);  // other users read it too
  root_ = fs::canonical(root_).string();
}

Tree::~Tree() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

std::string Tree::path(std::string_view inside) const {
  while (inside.starts_with('/')) inside.remove_prefix(1);
  return root_ + "/" + std::string(inside);
}

Tree& Tree::file(std::string_view inside, std::string_view content) {
  const auto full = path(inside);
  fs::create_directories(fs::path(full).parent_path());
  std::ofstream out(full, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  GANTRY_ASSERT(out.good());
  return *this;
}

Tree& Tree::directory(std::string_view inside) {
  fs::create_directories(path(inside));
  return *this;
}

Tree& Tree::link(std::string_view inside, std::string_view target) {
  const auto full = path(inside);
  fs::create_directories(fs::path(full).parent_path());
  fs::remove(full);
  fs::create_symlink(target, full);
  return *this;
}

Tree& Tree::remove(std::string_view inside) {
  fs::remove_all(path(inside));
  return *this;
}

sys::Host Tree::host() const {
  return *sys::Host::at(root_);
}

}  // namespace gantry::test
