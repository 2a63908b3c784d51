// SPDX-License-Identifier: Apache-2.0
// Archives of images as bytes: TarBytes().file("etc/passwd", "...").bytes().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::image {

class TarBytes {
 public:
  TarBytes& file(std::string_view name, std::string_view content = "");
  TarBytes& directory(std::string_view name);
  TarBytes& symlink(std::string_view name, std::string_view target);
  TarBytes& hard_link(std::string_view name, std::string_view target);
  // Any header, followed by content as it is: for archives that are wrong.
  TarBytes& member(char type, std::string_view name, std::string_view target, std::uint64_t size,
                   std::string_view content);

  std::string bytes() const;  // with the two empty blocks at its end
  const std::string& unfinished() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string gzip(std::string_view bytes);

// What `docker save` writes: the manifest comes last.
std::string docker_archive(const std::vector<std::string>& layers,
                           std::string_view config = R"({"architecture":"amd64","os":"linux"})");

// An OCI layout as an archive. The digests are names, not sums.
struct OciImage {
  std::string architecture;
  std::vector<std::string> layers;
};
std::string oci_archive(const std::vector<OciImage>& images);

}  // namespace gantry::image
