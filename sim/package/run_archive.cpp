// SPDX-License-Identifier: Apache-2.0
#include "sim/package/run_archive.hpp"

#include "sim/package/source_tree.hpp"

#include <zlib.h>

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>

namespace gantry::sim {
namespace {

constexpr std::uint32_t kPolynomial = 0x04c11db7;

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i << 24U;
    for (int bit = 0; bit < 8; ++bit)
      value = (value << 1U) ^ ((value & 0x80000000U) != 0 ? kPolynomial : 0U);
    table[i] = value;
  }
  return table;
}
constexpr auto kTable = make_table();

// Where the fourth line begins.
std::size_t fourth_line(std::string_view script) {
  std::size_t at = 0;
  for (int line = 0; line < 3; ++line) at = script.find('\n', at) + 1;
  return at;
}

}  // namespace

std::uint32_t posix_checksum(std::string_view bytes) {
  std::uint32_t sum = 0;
  const auto add = [&](unsigned char byte) {
    sum = (sum << 8U) ^ kTable[((sum >> 24U) ^ byte) & 0xffU];
  };
  for (const char c : bytes) add(static_cast<unsigned char>(c));
  for (std::size_t length = bytes.size(); length != 0; length >>= 8U)
    add(static_cast<unsigned char>(length & 0xffU));
  return ~sum;
}

std::string md5_of(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  GANTRY_ASSERT(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_md5(), nullptr) ==
                1);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string gzip(std::string_view bytes) {
  constexpr int kGzipWindow = 15 + 16;
  z_stream stream{};
  GANTRY_ASSERT(::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, 9,
                               Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(::deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  GANTRY_ASSERT(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

std::string run_archive(std::string script, const std::vector<tar::ArchiveFile>& files) {
  std::size_t unpacked = 0;
  for (const auto& file : files) unpacked += file.content.size();
  const auto lines = std::ranges::count(script, '\n');
  script = fill_in(std::move(script), {{"@SKIP@", fmt::to_string(lines + 1)},
                                       {"@KIB@", fmt::to_string((unpacked + 1023) / 1024)},
                                       {"@DATE@", "Thu Jan  1 00:00:00 UTC 1970"},
                                       {"@MAKER@", "1.6.0-nv9"}});
  const auto summed = script.substr(fourth_line(script)) + gzip(tar::to_tar(files, 0));
  const auto first =
      fill_in(script.substr(0, fourth_line(script)),
              {{"@CRC@", fmt::to_string(posix_checksum(summed))}, {"@MD5@", md5_of(summed)}});
  return first + summed;
}

}  // namespace gantry::sim
