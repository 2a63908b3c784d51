// SPDX-License-Identifier: Apache-2.0
// Archives of strangers: each is read within the limits, and what was read can be looked at.
#include "container/image/cuda_files.hpp"
#include "container/image/frameworks.hpp"
#include "container/image/image.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cstdint>
#include <string>

using namespace gantry;

namespace {

// A changed header would otherwise end at its checksum. Headers of layers that are not packed lie
// at multiples of a block, too.
void mend_checksums(std::string& bytes) {
  constexpr std::size_t kBlock = 512;
  constexpr std::size_t kChecksum = 148;
  for (std::size_t at = 0; at + kBlock <= bytes.size(); at += kBlock) {
    if (bytes.compare(at + 257, 5, "ustar") != 0) continue;
    bytes.replace(at + kChecksum, 8, 8, ' ');
    unsigned sum = 0;
    for (std::size_t i = 0; i < kBlock; ++i) sum += static_cast<unsigned char>(bytes[at + i]);
    bytes.replace(at + kChecksum, 7, fmt::format("{:06o}", sum) + '\0');
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  mend_checksums(bytes);
  static const sys::UniqueFd file(::memfd_create("archive", MFD_CLOEXEC));
  GANTRY_ASSERT(::ftruncate(file.get(), 0) == 0 && ::lseek(file.get(), 0, SEEK_SET) == 0);
  GANTRY_ASSERT(::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(size));
  GANTRY_ASSERT(::lseek(file.get(), 0, SEEK_SET) == 0);
  const auto image = image::read_archive(
      file.get(), {.bytes = 32U << 20U, .ratio_from = 1U << 20U, .kept_bytes = 1U << 20U});
  if (!image.ok()) {
    GANTRY_ASSERT(!image.error().text().empty());
    return 0;
  }
  const auto& files = *image->files;
  const auto places = image::python_directories(files, image->config.env);
  (void)image::find_frameworks(files, places);
  (void)image::find_cuda_runtimes(files, image->config.env, places);
  (void)image::find_own_libcuda(files, image->config.env);
  (void)image::find_compat(files, {"550.54.14", "12.4"});
  for (const auto& name : files.list("/")) {
    // A name that is listed is there, unless it is a link.
    if (files.size("/" + name)) GANTRY_ASSERT(files.exists("/" + name));
  }
  return 0;
}
