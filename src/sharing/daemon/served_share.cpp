// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/served_share.hpp"

#include "sharing/daemon/peer_identity.hpp"
#include "sharing/policy/turn_scheduler.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gantry::daemon {
namespace {

// Memory of a context on an H200 with driver 580; each share learns its own GPU's value from the
// first context.
constexpr std::uint64_t kContextBytes = 548'995'072;

// If NVML does not answer for this long, processes may join without knowing what others use. That
// is better than refusing them. cuInit waits 5 s.
constexpr std::uint64_t kLongestUnknown = 4'000'000'000;

std::optional<unsigned> digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return std::nullopt;
}

// A share is for programs: the machine's first process, a kernel thread or this daemon in a cgroup
// of a share would take the whole machine there, and `--policy stop` would kill it.
Status check_adoptable(pid_t pid) {
  if (pid > 1 && pid != ::getpid() && !is_kernel_thread(pid)) return {};
  return Error(Errc::Denied,
               fmt::format("process {} cannot belong to a share: it belongs to the machine", pid));
}

}  // namespace

std::optional<std::array<std::uint8_t, 16>> uuid_bytes(std::string_view text) {
  if (!text.starts_with("GPU-")) return std::nullopt;
  std::array<std::uint8_t, 16> bytes{};
  std::size_t digits = 0;
  for (const char c : text.substr(4)) {
    if (c == '-') continue;
    const auto value = digit(c);
    if (!value || digits >= 32) return std::nullopt;
    auto& byte = bytes.at(digits++ / 2);
    byte = static_cast<std::uint8_t>(byte << 4U | *value);
  }
  if (digits != 32) return std::nullopt;
  return bytes;
}

ServedShare::ServedShare(sys::Loop& loop, const sys::Host& host, ShareRecord record,
                         policy::TenantId id, SharedPages pages, Callbacks callbacks)
    : host_(host),
      record_(std::move(record)),
      id_(id),
      pages_(std::move(pages)),
      callbacks_(std::move(callbacks)),
      attached_processes_(loop, pages_,
                          {.joined = [this](const AttachedProcess& member) { joined(member); },
                           .left = [this](const AttachedProcess& member) { left(member); }}),
      context_estimates_(record_.cards.size(), kContextBytes) {}

Result<std::unique_ptr<ServedShare>> ServedShare::open(sys::Loop& loop, const sys::Host& host,
                                                       ShareRecord record, policy::TenantId id,
                                                       Origin origin, Callbacks callbacks) {
  std::erase_if(record.attached, [](const auto& known) { return !is_running(known); });
  GANTRY_CHECK(write_record(host, record));
  GANTRY_TRY(auto pages,
             SharedPages::make(record.share.name, std::vector<GpuPageValues>(record.cards.size())));
  std::unique_ptr<ServedShare> made(
      new ServedShare(loop, host, std::move(record), id, std::move(pages), std::move(callbacks)));
  made->show_limits();
  if (origin == Origin::FromDisk) made->recovered_ns_ = monotonic_ns();
  for (const auto& process : made->record_.adopted) {
    if (is_running(process)) (void)made->share_processes_.adopt(process, made->name());
  }
  for (const auto& process : made->record_.contained) {
    if (is_running(process)) made->share_processes_.contain(process);
  }
  const auto path = host.outside(fence_directory(made->name())) + "/socket";
  auto* share = made.get();
  GANTRY_TRY(made->socket_,
             ShareSocket::open(loop, path, made->pages_, made->attached_processes_,
                               {.report =
                                    [share](std::uint32_t slot, const FenceReport& report) {
                                      share->callbacks_.report(*share, slot, report);
                                    },
                                .refused = [share] { ++share->refused_; },
                                .admits = {},
                                .ready = [share] { return share->recovered_ns_ == 0; }}));
  return made;
}

std::optional<std::uint32_t> ServedShare::index_of(const model::GpuUuid& uuid) const {
  for (std::uint32_t gpu = 0; gpu < gpu_count(); ++gpu) {
    if (card(gpu).uuid == uuid) return gpu;
  }
  return std::nullopt;
}

GpuPageValues ServedShare::page_gpu(std::uint32_t gpu) const {
  const auto total = card(gpu).memory_bytes;
  const auto& memory = share().memory;
  return {.uuid = uuid_bytes(card(gpu).uuid.text).value_or(std::array<std::uint8_t, 16>{}),
          .memory_limit = memory ? memory->on(total) : UINT64_MAX,
          .memory_total = total,
          .context_estimate = context_estimates_[gpu],
          .queue_ns = static_cast<std::uint64_t>(policy::SchedulerTuning{}.queue.count()),
          .share_percent = share().time_policy.percent,
          .cap_percent = share().time_policy.excess == policy::Excess::Refused
                             ? share().time_policy.percent
                             : 0};
}

void ServedShare::show_limits() {
  for (std::uint32_t gpu = 0; gpu < gpu_count(); ++gpu) pages_.set_gpu(gpu, page_gpu(gpu));
  std::uint32_t flags = 0;
  if (gated_) flags |= FENCE_TIME_LIMITED;
  if (share().unattached == policy::UnattachedPolicy::Pass) flags |= FENCE_PASS_THROUGH;
  if (share().context_memory == policy::ContextMemory::Free) flags |= FENCE_CONTEXT_FREE;
  pages_.set_flags(flags);
}

Status ServedShare::change(const policy::Share& share) {
  auto changed = record_;
  changed.share = share;
  GANTRY_CHECK(write_record(host_, changed));
  record_ = std::move(changed);
  show_limits();
  return {};
}

Status ServedShare::adopt(pid_t pid) {
  GANTRY_CHECK(check_adoptable(pid));
  const auto process = process_ref(pid);
  if (process.started == 0)
    return Error(Errc::NotFound, fmt::format("there is no process {}", pid));
  std::erase_if(record_.adopted, [](const auto& known) { return !is_running(known); });
  record_.adopted.push_back(process);
  record_.cgroup = share_processes_.adopt(process, name());
  return write_record(host_, record_);
}

Status ServedShare::contain(pid_t pid) {
  const auto process = process_ref(pid);
  if (pid <= 1 || process.started == 0)
    return Error(Errc::NotFound, "the container's first process cannot be found");
  std::erase_if(record_.contained, [](const auto& known) { return !is_running(known); });
  record_.contained.push_back(process);
  share_processes_.contain(process);
  return write_record(host_, record_);
}

void ServedShare::joined(const AttachedProcess& member) {
  share_processes_.joined(member);
  const auto process = process_ref(member.pid);
  auto& attached = record_.attached;
  if (std::find(attached.begin(), attached.end(), process) != attached.end()) return;
  attached.push_back(process);
  save();  // before the welcome: the next daemon must know that it has the fence
}

// If there is no space to record it, the limits still apply.
void ServedShare::save() {
  unsaved_ = !write_processes(host_, record_).ok();
}

void ServedShare::left(const AttachedProcess& member) {
  callbacks_.left(*this, member.slot);
  std::erase_if(record_.attached, [&](const auto& known) { return known.pid == member.pid; });
  unsaved_ = true;
}

bool ServedShare::is_fenced(pid_t pid) const {
  const auto& attached = record_.attached;
  return attached_processes_.of_pid(pid) != nullptr ||
         std::any_of(attached.begin(), attached.end(),
                     [&](const auto& known) { return known.pid == pid && is_running(known); });
}

void ServedShare::set_gated(bool gated) {
  if (gated_ == gated) return;
  gated_ = gated;
  pages_.set_stale_after(gated ? kGatedStaleAfter : std::chrono::milliseconds(0));
  show_limits();
}

void ServedShare::set_context_estimate(std::uint32_t gpu, std::uint64_t bytes) {
  if (context_estimates_[gpu] == bytes) return;
  context_estimates_[gpu] = bytes;
  show_limits();
}

void ServedShare::on_heartbeat(std::uint64_t now_ns) {
  pages_.heartbeat(now_ns);
  pages_.free_orphaned_lock();
  socket_->on_heartbeat();
  if (unsaved_) save();
  if (now_ns > recovered_ns_ + kLongestUnknown) recovered_ns_ = 0;
}

// Processes of a restored share use the old daemon's pages until its heartbeat is too old for all
// of them. A process that joined before that, or before NVML was read, would not see how much
// memory they use.
void ServedShare::on_gpus_read(std::uint64_t asked_ns) {
  if (asked_ns > recovered_ns_ + FENCE_STALE_NS) recovered_ns_ = 0;
}

void ServedShare::add_finding(FindingState finding) {
  findings_.push_back(std::move(finding));
  if (findings_.size() > kMaxFindings) findings_.pop_front();
}

}  // namespace gantry::daemon
