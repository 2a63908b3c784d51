// SPDX-License-Identifier: Apache-2.0
// A file that is being downloaded: NAME.part, and NAME.part.info, which says what it is a part of.
// The lock of NAME.part keeps a second process away.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"
#include "base/sys/unique_fd.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gantry::driver_package {

struct PartInfo {
  std::string url;          // as it was asked for
  std::string validator;    // a strong ETag or a date: for If-Range; "" if the server gave none
  std::uint64_t total = 0;  // 0 = not known
  bool operator==(const PartInfo&) const = default;
};
// "" for what cannot be written.
std::string to_text(const PartInfo& info);
PartInfo parse_part_info(std::string_view text);  // empty if it is damaged or of another format

class PartFile {
 public:
  // Creates the directory if needed. Busy if another process has it, Denied if other users could
  // change what is in the directory.
  static Result<PartFile> open(const sys::Host& host, const std::string& directory,
                               const std::string& name);

  std::uint64_t size() const { return size_; }
  const PartInfo& info() const { return info_; }

  Status set_info(PartInfo info);
  Status reserve(std::uint64_t total);  // Internal with ENOSPC if there is no room
  Status append(std::string_view bytes);
  Status clear();
  Result<std::string> sha256() const;
  Status publish();  // it becomes NAME, on disk
  // Notes in NAME.source what the URL of the part's info had: the bytes with this digest.
  Status note_source(std::string_view sha256);
  Status discard();

 private:
  Status replace(const std::string& name, std::string_view text);
  PartFile(sys::UniqueFd directory, sys::UniqueFd file, std::string name, std::string shown);
  Status read_state();

  sys::UniqueFd directory_;
  sys::UniqueFd file_;
  std::string name_;   // NAME
  std::string shown_;  // of NAME.part, for messages
  std::uint64_t size_ = 0;
  PartInfo info_;
};

// Whether NAME.source says that this URL had the bytes with this digest. Who has no digest of his
// own cannot tell otherwise which of two URLs a file came from.
bool is_from(const sys::Host& host, const std::string& path, std::string_view url,
             std::string_view sha256);

// Makes the directory and those above it, inside the root, and opens it.
Result<sys::UniqueFd> make_directories(const sys::Host& host, const std::string& path);

}  // namespace gantry::driver_package
