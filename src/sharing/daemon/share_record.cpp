// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/share_record.hpp"

#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "base/sys/replace_file.hpp"
#include "base/sys/trusted.hpp"
#include "sharing/daemon/client.hpp"
#include "sharing/daemon/peer_identity.hpp"
#include "sharing/policy/share_json.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace gantry::daemon {
namespace {

constexpr std::size_t kMaxRecordBytes = std::size_t{256} << 10;
constexpr std::size_t kMostAdopted = 1024;

std::string place(std::string_view name, std::string_view what) {
  return fmt::format("{}/{}/{}", kSharesDirectory, name, what);
}

void write_process(json::Writer& out, const ProcessRef& process) {
  out.object([&] {
    out.member("pid", process.pid);
    out.member("started", process.started);
  });
}

Result<ProcessRef> process_from(json::Value value) {
  const auto pid = value["pid"].u64();
  const auto started = value["started"].u64();
  if (!pid || !started || *pid > INT32_MAX)
    return Error(Errc::Corrupt, "a process needs a pid and a start time");
  return ProcessRef{static_cast<pid_t>(*pid), *started};
}

Result<std::vector<policy::GpuCapacity>> cards_from(json::Value list) {
  std::vector<policy::GpuCapacity> cards;
  for (const auto value : list) {
    const auto uuid = value["uuid"].string();
    const auto bytes = value["memory"].u64();
    if (!uuid || !bytes || cards.size() >= policy::kMaxGpusPerShare)
      return Error(Errc::Corrupt, "a GPU needs a UUID and a memory size");
    cards.push_back({.uuid = {*uuid}, .memory_bytes = *bytes});
  }
  if (cards.empty()) return Error(Errc::Corrupt, "a share needs a GPU");
  return cards;
}

Status make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Error::sys(error.value(), "mkdir").in(path);
  // Every user of the container must be able to enter this directory, whatever our umask is.
  if (::chmod(path.c_str(), 0755) != 0) return Error::sys(errno, "chmod").in(path);
  return {};
}

Result<std::vector<ProcessRef>> processes_from(json::Value list) {
  std::vector<ProcessRef> processes;
  for (const auto value : list) {
    if (processes.size() >= kMostAdopted) break;
    GANTRY_TRY(const auto process, process_from(value));
    processes.push_back(process);
  }
  return processes;
}

Status make_empty(const std::string& path) {
  const sys::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.valid()) return Error::sys(errno, "open").in(path);
  return {};
}

}  // namespace

ProcessRef process_ref(pid_t pid) {
  return {pid, start_ticks(pid)};
}

bool is_running(const ProcessRef& process) {
  return process.pid > 0 && start_ticks(process.pid) == process.started;
}

std::string to_json(const ShareRecord& record) {
  json::Writer out;
  const auto write_each = [&](const ProcessRef& process) { write_process(out, process); };
  out.object([&] {
    out.key("share");
    policy::write(out, record.share);
    out.array("cards", record.cards, [&](const policy::GpuCapacity& card) {
      out.object([&] {
        out.member("uuid", card.uuid.text);
        out.member("memory", card.memory_bytes);
      });
    });
    out.key("holder");
    write_process(out, record.holder);
    out.array("adopted", record.adopted, write_each);
    out.array("contained", record.contained, write_each);
    out.array("attached", record.attached, write_each);
    if (!record.cgroup.empty()) out.member("cgroup", record.cgroup);
  });
  return std::move(out).text();
}

Result<ShareRecord> record_from_json(std::string_view text) {
  GANTRY_TRY(const auto document, json::Document::parse(std::string(text)));
  ShareRecord record;
  const auto share = document["share"];
  if (!share) return Error(Errc::Corrupt, "a record needs a share");
  GANTRY_TRY(record.share, policy::share_from_json(share));
  GANTRY_CHECK(check_name(record.share.name));
  GANTRY_TRY(record.cards, cards_from(document["cards"]));
  GANTRY_TRY(record.holder, process_from(document["holder"]));
  GANTRY_TRY(record.adopted, processes_from(document["adopted"]));
  GANTRY_TRY(record.contained, processes_from(document["contained"]));
  GANTRY_TRY(record.attached, processes_from(document["attached"]));
  record.cgroup = document["cgroup"].string().value_or("");
  return record;
}

Status check_name(std::string_view name) {
  const auto fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  if (!name.empty() && name.size() <= policy::kMaxNameLength && name.front() != '.' &&
      std::all_of(name.begin(), name.end(), fine))
    return {};
  return Error(Errc::Invalid, fmt::format("the name of a share must have 1 to {} letters, digits, "
                                          "'-', '_' and '.', and must not begin with '.'",
                                          policy::kMaxNameLength));
}

std::string fence_directory(std::string_view name) {
  return place(name, "fence");
}

Status write_processes(const sys::Host& host, const ShareRecord& record) {
  return sys::replace_file(host.outside(place(record.share.name, "share.json")),
                           to_json(record) + "\n", 0600, sys::Durability::Volatile);
}

namespace {

Status write_parts(const sys::Host& host, const ShareRecord& record) {
  const auto& name = record.share.name;
  const auto fence = host.outside(fence_directory(name));
  GANTRY_CHECK(make_directory(fence));
  for (const auto mount_point : {"/cuda", "/nvml"}) GANTRY_CHECK(make_empty(fence + mount_point));
  const auto pass = fence + "/pass-through";
  if (record.share.unattached == policy::UnattachedPolicy::Pass) {
    GANTRY_CHECK(make_empty(pass));
  } else {
    ::unlink(pass.c_str());
  }
  return write_processes(host, record);
}

}  // namespace

Status write_record(const sys::Host& host, const ShareRecord& record) {
  GANTRY_CHECK(check_name(record.share.name));
  auto written = write_parts(host, record);
  if (written.ok() || written.error().sys_errno() != ENOSPC) return written;
  return std::move(written).error().in(
      "there is no space for the record of a share; `df -h /run; df -i /run` shows what is full");
}

// Remove the record first: without it the remaining files belong to no share.
void remove_record(const sys::Host& host, std::string_view name) {
  if (!check_name(name).ok()) return;
  std::error_code ignored;
  std::filesystem::remove(host.outside(place(name, "share.json")), ignored);
  std::filesystem::remove_all(host.outside(fmt::format("{}/{}", kSharesDirectory, name)), ignored);
}

StoredRecords read_records(const sys::Host& host) {
  StoredRecords found;
  const auto names = host.list(kSharesDirectory);
  if (!names.ok()) return found;  // the first share daemon of this machine
  for (const auto& name : *names) {
    if (!check_name(name).ok()) continue;
    const auto path = place(name, "share.json");
    if (!host.exists(path)) {
      found.unfinished.push_back(name);
      continue;
    }
    auto text = sys::read_trusted(host, path, kMaxRecordBytes);
    auto record =
        text.ok() ? record_from_json(*text) : Result<ShareRecord>(std::move(text).error());
    if (record.ok() && record->share.name != name)
      record = Error(Errc::Corrupt, "this is the record of another share");
    if (record.ok()) {
      found.records.push_back(*std::move(record));
    } else {
      found.problems.push_back(std::move(record).error().in(path));
    }
  }
  return found;
}

}  // namespace gantry::daemon
