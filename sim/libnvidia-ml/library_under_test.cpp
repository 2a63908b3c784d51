// SPDX-License-Identifier: Apache-2.0
#include "sim/libnvidia-ml/library_under_test.hpp"

#include "support/paths.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>
#include <utility>

namespace gantry::sim {
namespace {

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string device_table(const gantry_sim_machine& machine) {
  std::string text =
      fmt::format("/dev/nvidiactl c {} 255 0666 0 0\n/dev/nvidia-uvm c {} 0 0666 0 0\n",
                  machine.nvidia_major, machine.uvm_major);
  for (std::uint32_t i = 0; i < machine.gpu_count; ++i) {
    const auto minor = machine.gpu[i].minor;
    text += fmt::format("/dev/nvidia{0} c {1} {0} 0666 0 0\n", minor, machine.nvidia_major);
  }
  return text;
}

off_t state_offset(const std::string& bytes) {
  gantry_sim_footer footer{};
  std::memcpy(&footer, bytes.data() + bytes.size() - sizeof footer, sizeof footer);
  return static_cast<off_t>(footer.image_offset + offsetof(gantry_sim_image, state));
}

}  // namespace

LoadedLibrary::LoadedLibrary(const std::string& machine, const Edit& edit,
                             const EditFile& edit_file) {
  const auto loaded = load_machine(machine);
  auto made = make_image(*loaded);
  Image image = std::move(*made);
  std::strcpy(image->machine.library_directory, "/usr/lib64");
  gpu_nodes_ = device_table(image->machine);
  caps_major_ = image->machine.caps_major;
  // Every instance of the first GPU, so that tests see MIG devices without root.
  std::vector<unsigned int> capabilities(135);  // 15 instances of 9
  std::iota(capabilities.begin(), capabilities.end(), 3U);
  const std::string table = nodes(capabilities);
  if (edit) edit(*image);
  std::string bytes =
      append_image(read_all(test::built("lib/gantry/sim/" GANTRY_SIM_LIBRARY)), *image);
  if (edit_file) edit_file(bytes);
  file = tree.path("usr/lib64/libnvidia-ml.so.1");
  tree.file("usr/lib64/libnvidia-ml.so.1", bytes).file("dev.table", table);
  handle_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) ADD_FAILURE() << ::dlerror();
}

LoadedLibrary::~LoadedLibrary() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

std::string LoadedLibrary::nodes(const std::vector<unsigned int>& capabilities) const {
  std::string text = gpu_nodes_;
  for (const auto minor : capabilities) {
    text += fmt::format("/dev/nvidia-caps/nvidia-cap{0} c {1} {0} 0444 0 0\n", minor, caps_major_);
  }
  return text;
}

void* LoadedLibrary::symbol(const char* name) const {
  return ::dlsym(handle_, name);
}

void LoadedLibrary::change(const std::function<void(gantry_sim_state&)>& edit) const {
  const std::string bytes = read_all(file);
  const off_t offset = state_offset(bytes);
  auto state = std::make_unique<gantry_sim_state>();
  std::memcpy(state.get(), bytes.data() + offset, sizeof *state);
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  state->sequence |= 1U;
  EXPECT_EQ(::pwrite(fd, state.get(), 4, offset), 4);
  edit(*state);
  EXPECT_EQ(::pwrite(fd, state.get(), sizeof *state, offset), static_cast<ssize_t>(sizeof *state));
  state->sequence += 1;
  EXPECT_EQ(::pwrite(fd, state.get(), 4, offset), 4);
  ::close(fd);
}

void LoadedLibrary::event(std::uint32_t gpu, std::uint32_t type, std::uint64_t data) const {
  change([&](gantry_sim_state& state) {
    const auto next = ++state.event_sequence;
    state.event[next % GANTRY_SIM_MAX_EVENTS] = {next, gpu, type, data, -1, -1};
  });
}

}  // namespace gantry::sim
