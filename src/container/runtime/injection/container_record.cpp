// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/injection/container_record.hpp"

#include "base/json/document.hpp"
#include "base/sys/replace_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace gantry::runtime {
namespace {

constexpr std::size_t kStaleChecksPerWrite = 4;  // so that one start does not check all records
constexpr std::time_t kGrace = 60;  // seconds that the creation of a container may take
constexpr std::size_t kMaxRecordBytes = std::size_t{4} << 20;

// Valid ids of runc and crun; excludes names that lead out of the directory.
bool is_container_id(std::string_view id) {
  return !id.empty() && id.size() <= 200 && id.front() != '.' &&
         id.find('/') == std::string_view::npos && id.find('\0') == std::string_view::npos;
}

std::string place(std::string_view id) {
  return fmt::format("{}/{}.json", kContainerRecords, id);
}

void remove_if_gone(const sys::Host& host, const std::string& name) {
  const auto path = fmt::format("{}/{}", kContainerRecords, name);
  const auto outside = host.outside(path);
  struct stat info {};
  if (::stat(outside.c_str(), &info) != 0) return;
  if (std::time(nullptr) - info.st_mtime < kGrace) return;
  const auto text = host.read(path, kMaxRecordBytes);
  if (!text.ok()) return;
  const auto record = container_record_from_json(*text);
  if (record.ok() && ::access(record->state.c_str(), F_OK) == 0) return;
  ::unlink(outside.c_str());
}

void remove_stale_records(const sys::Host& host) {
  const auto names = host.list(kContainerRecords);
  if (!names.ok() || names->empty()) return;
  std::timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto start = static_cast<std::size_t>(now.tv_nsec) % names->size();
  for (std::size_t i = 0; i < std::min(kStaleChecksPerWrite, names->size()); ++i) {
    remove_if_gone(host, (*names)[(start + i) % names->size()]);
  }
}

}  // namespace

Status write_container_record(const sys::Host& host, const ContainerRecord& record) {
  if (!is_container_id(record.id)) {
    return Error(Errc::Invalid, fmt::format("`{}` is not a container's id", record.id));
  }
  remove_stale_records(host);
  return sys::replace_file(host.outside(place(record.id)), to_json(record), 0644,
                           sys::Durability::Volatile);
}

void remove_container_record(const sys::Host& host, std::string_view id) {
  if (is_container_id(id)) ::unlink(host.outside(place(id)).c_str());
}

Result<ContainerRecord> read_container_record(const sys::Host& host, std::string_view id) {
  if (!is_container_id(id)) {
    return Error(Errc::Invalid, fmt::format("`{}` is not a container's id", id));
  }
  GANTRY_TRY(const auto text, host.read(place(id), kMaxRecordBytes));
  return container_record_from_json(text);
}

}  // namespace gantry::runtime
