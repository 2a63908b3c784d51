// SPDX-License-Identifier: Apache-2.0
// Digests of files that are too large to be held in memory.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace gantry::driver_package {

// A driver that the configuration names. `sha256` and `bytes` are pinned there; a digest that comes
// from the server that has the file proves nothing.
struct PinnedPackage {
  std::string version;      // "580.159.04"
  std::string url;          // https://..., or http://... together with a digest
  std::string sha256;       // 64 hexadecimal digits; "" = not pinned
  std::uint64_t bytes = 0;  // 0 = not pinned
  bool operator==(const PinnedPackage&) const = default;
};

// 64 hexadecimal digits, in lower case in the result.
Result<std::string> parse_sha256(std::string_view text);

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void add(std::string_view bytes);
  std::string finish();  // in lower case; call it once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Result<std::string> sha256_of(const sys::Host& host, const std::string& path);

// Denied if the digest is another one: the sentence has both, and says what to do.
Status check_sha256(const sys::Host& host, const std::string& path, const std::string& sha256);

}  // namespace gantry::driver_package
