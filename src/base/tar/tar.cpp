// SPDX-License-Identifier: Apache-2.0
#include "base/tar/tar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace gantry::tar {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kNameBytes = 100;
constexpr std::size_t kPrefixBytes = 155;

// The header's fields, by their offset.
constexpr std::size_t kMode = 100;
constexpr std::size_t kUid = 108;
constexpr std::size_t kGid = 116;
constexpr std::size_t kSize = 124;
constexpr std::size_t kTime = 136;
constexpr std::size_t kChecksum = 148;
constexpr std::size_t kType = 156;
constexpr std::size_t kMagic = 257;
constexpr std::size_t kOwner = 265;
constexpr std::size_t kGroup = 297;
constexpr std::size_t kPrefix = 345;

using Header = std::array<char, kBlock>;

void put(Header& header, std::size_t offset, std::string_view text) {
  std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(offset));
}

struct SplitName {
  std::string_view prefix;
  std::string_view name;
};

// The format keeps the last part of a long name and the directories before it in two fields.
SplitName split_name(std::string_view name) {
  if (name.size() <= kNameBytes) return {"", name};
  const auto slash = name.find('/', name.size() - kNameBytes - 1);
  if (slash == std::string_view::npos || slash > kPrefixBytes) {
    return {"", name.substr(name.size() - kNameBytes)};
  }
  return {name.substr(0, slash), name.substr(slash + 1)};
}

Header header_of(const ArchiveFile& file, std::int64_t modified_unix_s) {
  Header header{};
  const auto [prefix, name] = split_name(file.name);
  put(header, 0, name);
  put(header, kMode, fmt::format("{:07o}", file.mode & 07777U));
  put(header, kUid, "0000000");
  put(header, kGid, "0000000");
  put(header, kSize, fmt::format("{:011o}", file.content.size()));
  put(header, kTime, fmt::format("{:011o}", std::max<std::int64_t>(0, modified_unix_s)));
  put(header, kChecksum, "        ");  // counts as blanks in the sum
  header[kType] = file.name.ends_with('/') ? '5' : '0';
  put(header, kMagic, std::string_view("ustar\00000", 8));
  put(header, kOwner, "root");
  put(header, kGroup, "root");
  put(header, kPrefix, prefix);
  const auto sum = std::accumulate(header.begin(), header.end(), 0U, [](unsigned total, char c) {
    return total + static_cast<unsigned char>(c);
  });
  put(header, kChecksum, fmt::format("{:06o}", sum));
  header[kChecksum + 6] = '\0';
  return header;
}

}  // namespace

std::string to_tar(const std::vector<ArchiveFile>& files, std::int64_t modified_unix_s) {
  std::string out;
  for (const auto& file : files) {
    const auto header = header_of(file, modified_unix_s);
    out.append(header.data(), header.size());
    out += file.content;
    out.append((kBlock - file.content.size() % kBlock) % kBlock, '\0');
  }
  return out.append(2 * kBlock, '\0');
}

}  // namespace gantry::tar
