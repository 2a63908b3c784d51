// SPDX-License-Identifier: Apache-2.0
#include "install/driver_package/checksum.hpp"

#include "base/core/printable.hpp"
#include "base/core/text.hpp"
#include "install/driver_package/file_bytes_internal.hpp"
#include "install/driver_package/run_header.hpp"
#include "net/http/openssl.hpp"

#include <fcntl.h>

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>

namespace gantry::driver_package {
namespace {

using DigestContext = http::OpensslPtr<EVP_MD_CTX, EVP_MD_CTX_free>;

class Digest {
 public:
  explicit Digest(const EVP_MD* kind) : context_(EVP_MD_CTX_new()) {
    GANTRY_ASSERT(context_ && EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1);
  }
  void add(std::string_view bytes) {
    GANTRY_ASSERT(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }
  std::string finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    GANTRY_ASSERT(EVP_DigestFinal_ex(context_.get(), bytes.data(), &size) == 1);
    std::string text;
    for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
    return text;
  }

 private:
  DigestContext context_;
};

// The sum of POSIX cksum: a CRC, most significant bit first, of the bytes and then of their number.
class Cksum {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) step(static_cast<unsigned char>(c));
    size_ += bytes.size();
  }
  std::uint32_t finish() {
    for (auto left = size_; left != 0; left >>= 8U) step(left & 0xffU);
    return ~crc_;
  }

 private:
  static constexpr std::array<std::uint32_t, 256> kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      auto value = i << 24U;
      for (int bit = 0; bit < 8; ++bit)
        value = (value << 1U) ^ ((value >> 31U) != 0 ? 0x04c11db7U : 0);
      table[i] = value;
    }
    return table;
  }();
  void step(std::uint64_t byte) {
    crc_ = (crc_ << 8U) ^ kTable[((crc_ >> 24U) ^ static_cast<std::uint32_t>(byte)) & 0xffU];
  }
  std::uint32_t crc_ = 0;
  std::uint64_t size_ = 0;
};

// Passes on what follows the third line: the sums are in the second and the third.
class AfterThirdLine {
 public:
  std::string_view of(std::string_view piece) {
    while (lines_ < 3 && !piece.empty()) {
      const auto end = piece.find('\n');
      if (end == std::string_view::npos) return {};
      piece.remove_prefix(end + 1);
      ++lines_;
    }
    return piece;
  }

 private:
  int lines_ = 0;
};

}  // namespace

Result<std::string> parse_sha256(std::string_view text) {
  auto digest = to_lower(trim(text));
  const bool is_digest = digest.size() == 64 && std::ranges::all_of(digest, [](char c) {
                           return is_digit(c) || (c >= 'a' && c <= 'f');
                         });
  if (is_digest) return digest;
  return Error(Errc::Invalid,
               fmt::format("`{}` is not a SHA-256 digest", printable(text.substr(0, 80))))
      .advise("write the 64 hexadecimal digits that `sha256sum FILE` prints");
}

struct Sha256::State {
  Digest digest{EVP_sha256()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
void Sha256::add(std::string_view bytes) {
  state_->digest.add(bytes);
}
std::string Sha256::finish() {
  return state_->digest.finish();
}

Result<std::string> sha256_of(const sys::Host& host, const std::string& path) {
  const auto doing = fmt::format("computing the digest of {}", path);
  GANTRY_TRY(const auto fd, host.open(path, O_RDONLY | O_NONBLOCK).in(doing));
  GANTRY_TRY(const auto info, sys::file_info(fd.get(), path));
  if (info.kind != sys::FileKind::Regular)
    return Error(Errc::Invalid, fmt::format("{} is not a file", path)).in(doing);
  Sha256 digest;
  GANTRY_CHECK(for_each_piece(fd.get(), path, [&](std::string_view piece) { digest.add(piece); }));
  return digest.finish();
}

Status check_sha256(const sys::Host& host, const std::string& path, const std::string& sha256) {
  GANTRY_TRY(const auto wanted, parse_sha256(sha256));
  GANTRY_TRY(const auto found, sha256_of(host, path));
  if (found == wanted) return {};
  return Error(Errc::Denied, fmt::format("{} has the SHA-256 digest {}, but {} was asked for", path,
                                         found, wanted))
      .advise(
          "find out which of the two is right before you change the configuration: a file with "
          "another digest is not the driver that somebody tested");
}

Status check_run_file(const sys::Host& host, const std::string& path, const RunHeader& header) {
  const auto doing = fmt::format("checking {}", path);
  GANTRY_TRY(const auto fd, host.open(path, O_RDONLY | O_NONBLOCK).in(doing));
  Cksum cksum;
  Digest md5(EVP_md5());
  AfterThirdLine after;
  GANTRY_CHECK(for_each_piece(fd.get(), path, [&](std::string_view piece) {
    const auto part = after.of(piece);
    cksum.add(part);
    md5.add(part);
  }));
  if (const auto sum = cksum.finish(); sum != header.crc)
    return Error(Errc::Corrupt, fmt::format("{} is damaged: its sum is {}, but it should be {}",
                                            path, sum, header.crc))
        .advise("download it again");
  const auto sum = md5.finish();
  if (header.md5.empty() || sum == header.md5) return {};
  return Error(Errc::Corrupt, fmt::format("{} is damaged: its MD5 sum is {}, but it should be {}",
                                          path, sum, header.md5))
      .advise("download it again");
}

}  // namespace gantry::driver_package
