// SPDX-License-Identifier: Apache-2.0
#include "container/image/archive_for_test.hpp"

#include <zlib.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

namespace gantry::image {
namespace {

constexpr std::size_t kBlock = 512;

void put(std::string& block, std::size_t at, std::string_view text) {
  block.replace(at, text.size(), text);
}

std::string octal(std::uint64_t number, int digits) {
  return fmt::format("{:0{}o}", number, digits);
}

std::string header(char type, std::string_view name, std::string_view target, std::uint64_t size) {
  std::string block(kBlock, '\0');
  put(block, 0, name.substr(0, 100));
  put(block, 100, "0000755");
  put(block, 124, octal(size, 11));
  put(block, 148, "        ");
  block[156] = type;
  put(block, 157, target.substr(0, 100));
  put(block, 257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(block, 148, octal(sum, 6) + '\0');
  return block;
}

std::string blob(std::string_view name) {
  return fmt::format("blobs/sha256/{}", name);
}

std::string descriptor(std::string_view name) {
  return fmt::format(R"({{"digest":"sha256:{}"}})", name);
}

}  // namespace

TarBytes& TarBytes::member(char type, std::string_view name, std::string_view target,
                           std::uint64_t size, std::string_view content) {
  bytes_ += header(type, name, target, size);
  bytes_ += content;
  bytes_.resize((bytes_.size() + kBlock - 1) / kBlock * kBlock, '\0');
  return *this;
}

TarBytes& TarBytes::file(std::string_view name, std::string_view content) {
  return member('0', name, "", content.size(), content);
}

TarBytes& TarBytes::directory(std::string_view name) {
  return member('5', name, "", 0, "");
}

TarBytes& TarBytes::symlink(std::string_view name, std::string_view target) {
  return member('2', name, target, 0, "");
}

TarBytes& TarBytes::hard_link(std::string_view name, std::string_view target) {
  return member('1', name, target, 0, "");
}

std::string TarBytes::bytes() const {
  return bytes_ + std::string(2 * kBlock, '\0');
}

std::string gzip(std::string_view bytes) {
  z_stream zlib{};
  deflateInit2(&zlib, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&zlib, bytes.size()), '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  zlib.avail_in = static_cast<uInt>(bytes.size());
  zlib.next_out = reinterpret_cast<Bytef*>(packed.data());
  zlib.avail_out = static_cast<uInt>(packed.size());
  deflate(&zlib, Z_FINISH);
  packed.resize(zlib.total_out);
  deflateEnd(&zlib);
  return packed;
}

std::string docker_archive(const std::vector<std::string>& layers, std::string_view config) {
  TarBytes tar;
  std::vector<std::string> names;
  for (const auto& layer : layers) {
    names.push_back(fmt::format("\"{}/layer.tar\"", names.size()));
    tar.file(fmt::format("{}/layer.tar", names.size() - 1), layer);
  }
  return tar.file("config.json", config)
      .file("manifest.json",
            fmt::format(R"([{{"Config":"config.json","RepoTags":["train:1"],"Layers":[{}]}}])",
                        fmt::join(names, ",")))
      .bytes();
}

std::string oci_archive(const std::vector<OciImage>& images) {
  TarBytes tar;
  std::vector<std::string> index;
  for (const auto& image : images) {
    std::vector<std::string> layers;
    for (const auto& layer : image.layers) {
      const auto name = fmt::format("{}{}", image.architecture, layers.size());
      tar.file(blob(name), layer);
      layers.push_back(descriptor(name));
    }
    const auto& own = image.architecture;
    tar.file(blob("config" + own), fmt::format(R"({{"architecture":"{}"}})", own));
    tar.file(blob("manifest" + own),
             fmt::format(R"({{"config":{},"layers":[{}]}})", descriptor("config" + own),
                         fmt::join(layers, ",")));
    index.push_back(fmt::format(
        R"({{"digest":"sha256:manifest{0}","platform":{{"architecture":"{0}"}}}})", own));
  }
  return tar.file("index.json", fmt::format(R"({{"manifests":[{}]}})", fmt::join(index, ",")))
      .bytes();
}

}  // namespace gantry::image
