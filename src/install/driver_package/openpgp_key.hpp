// SPDX-License-Identifier: Apache-2.0
// Keys that sign a repository of packages, as OpenPGP (RFC 4880, RFC 9580) has them: which ones a
// file contains, and the file again with some of them alone.
#pragma once

#include "base/core/result.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::driver_package {

struct RepositoryKey {
  std::string fingerprint;  // 40 or 64 hexadecimal digits, in upper case
  std::string user;         // "cudatools <cudatools@nvidia.com>"; "" if it has no name
  // The key with its names and their signatures. Without subkeys: rpm believes subkeys that the key
  // never signed (CVE-2021-3521), and who can change the file can add one.
  std::string packets;
  std::string with_subkeys;  // all that the file has of it
  bool operator==(const RepositoryKey&) const = default;
};

// The public keys of a file: binary, or armored in one block or several. Bounded; accepts any
// bytes. Corrupt, with what is wrong, if it has no key, or anything that we cannot read.
Result<std::vector<RepositoryKey>> parse_repository_keys(std::string_view file);

// "610C 7b14...", "0x610C7B14...": 40 or 64 digits, in upper case and without spaces. nullopt for
// anything else, also for the short numbers of keys, which are easily made twice.
std::optional<std::string> parse_fingerprint(std::string_view text);

// The block that `rpm --import` reads.
std::string to_armor(std::string_view packets);

}  // namespace gantry::driver_package
