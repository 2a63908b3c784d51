// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/ownership_store.hpp"

#include "base/core/text.hpp"
#include "base/sys/descriptor.hpp"
#include "base/sys/kernel.hpp"
#include "base/sys/replace_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace gantry::ownership {
namespace {

constexpr std::uint64_t kRewriteAt = std::uint64_t{256} << 10;
constexpr std::size_t kReadLimit = std::size_t{16} << 20;

Result<sys::UniqueFd> take_lock(const std::string& path) {
  sys::UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock.valid()) return Error::sys(errno, fmt::format("open {}", path));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return Error::sys(errno, fmt::format("flock {}", path));
  return Error(Errc::Busy,
               fmt::format("another process is writing the ledger; find it with: fuser {}", path));
}

Status check_name(std::string_view what, std::string_view name) {
  if (!name.empty() && name.size() <= kMaxNameLength) return {};
  return Error(Errc::Invalid, fmt::format("{} must have 1 to {} characters", what, kMaxNameLength));
}

Error held(const model::GpuUuid& gpu, const std::string& by, std::string_view helps) {
  return {Errc::Busy, fmt::format("{} is held by {}; {}", gpu.text, by, helps)};
}

Error unreadable(const std::string& path) {
  return {Errc::Corrupt,
          fmt::format("{0} cannot be read, so the owners of the GPUs are unknown. If no virtual "
                      "machine and no resource claim uses a GPU: mv {0} {0}.bad, and start again",
                      path)};
}

bool overlaps(const Claim& a, const Claim& b) {
  return a.gpu == b.gpu && (a.mig.text.empty() || b.mig.text.empty() || a.mig == b.mig);
}

}  // namespace

Result<OwnershipStore> OwnershipStore::open(const sys::Host& host, std::string_view path) {
  GANTRY_CHECK(sys::real_kernel()
                   ->make_directory(host, std::string(parent_directory(path)))
                   .in("opening the ledger"));
  const auto outside = host.outside(path);
  GANTRY_TRY(auto lock, take_lock(outside + ".lock"));
  OwnershipStore ledger(outside, std::move(lock));
  GANTRY_CHECK(ledger.load(host, path));
  return ledger;
}

Result<OwnershipState> OwnershipStore::peek(const sys::Host& host, std::string_view path) {
  const auto text = host.read(path, kReadLimit);
  if (!text.ok() && text.error().code() == Errc::NotFound) return OwnershipState{};
  if (!text.ok()) return Error(text.error()).in("reading the ledger");
  auto replayed = replay_records(*text);
  if (!replayed.any) return unreadable(host.outside(path));
  return std::move(replayed.state);
}

Status OwnershipStore::load(const sys::Host& host, std::string_view inside) {
  const auto text = host.read(inside, kReadLimit);
  if (!text.ok()) {
    if (text.error().code() != Errc::NotFound) return Error(text.error()).in("reading the ledger");
    return rewrite(to_record(state_));  // the file always begins with a complete record
  }
  auto replayed = replay_records(*text);
  if (!replayed.any) return unreadable(path_);
  state_ = std::move(replayed.state);
  if (replayed.damaged) {
    notes_.push_back(fmt::format("{} was damaged; the last complete record, number {}, is used",
                                 path_, state_.sequence));
    const auto kept = sys::replace_file(path_ + ".damaged", *text, 0600);
    if (!kept.ok()) notes_.push_back(kept.error().text());
    return rewrite(to_record(state_));
  }
  file_ = sys::UniqueFd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (!file_.valid()) return Error::sys(errno, fmt::format("open {}", path_));
  size_ = text->size();
  return {};
}

Status OwnershipStore::rewrite(const std::string& record) {
  GANTRY_CHECK(sys::replace_file(path_, record, 0600).in("writing the ledger"));
  file_ = sys::UniqueFd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (!file_.valid()) return Error::sys(errno, fmt::format("open {}", path_));
  size_ = record.size();
  return {};
}

// After a failure the file keeps its old end, or the next change writes it again.
Status OwnershipStore::append(const std::string& record) {
  auto status = sys::write_all(file_.get(), record, path_);
  if (status.ok() && ::fdatasync(file_.get()) != 0)
    status = Error::sys(errno, fmt::format("fdatasync {}", path_));
  if (status.ok()) {
    size_ += record.size();
    return {};
  }
  if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) file_.reset();
  return std::move(status).in("writing the ledger");
}

Status OwnershipStore::write(OwnershipState next) {
  next.sequence = state_.sequence + 1;
  const auto record = to_record(next);
  const bool start_over = !file_.valid() || size_ + record.size() > kRewriteAt;
  GANTRY_CHECK(start_over ? rewrite(record) : append(record));
  state_ = std::move(next);
  return {};
}

Status OwnershipStore::adopt(const model::GpuUuid& gpu, Owner owner, model::AllocationMode use) {
  GANTRY_CHECK(check_name("a GPU's UUID", gpu.text));
  if (state_.find(gpu) != nullptr) return {};
  if (state_.gpus.size() >= kMaxOwnedGpus)
    return Error(Errc::Invalid, "the ledger has too many GPUs");
  auto next = state_;
  next.gpus.push_back({.gpu = gpu, .owner = owner, .use = use});
  std::sort(next.gpus.begin(), next.gpus.end(),
            [](const GpuOwnership& a, const GpuOwnership& b) { return a.gpu < b.gpu; });
  return write(std::move(next));
}

Status OwnershipStore::change(const model::GpuUuid& gpu, Owner owner, model::AllocationMode use,
                              const GpuUsage& evidence) {
  const auto* entry = state_.find(gpu);
  if (entry == nullptr)
    return Error(Errc::NotFound, fmt::format("{} is not in the ledger", gpu.text));
  if (entry->owner == owner && entry->use == use) return {};
  for (const auto& claim : state_.claims) {
    if (claim.gpu == gpu)
      return held(gpu, claim.what, "it can change its owner when that has ended");
  }
  if (!evidence.holders.empty())
    return held(gpu, evidence.holders.front(), "it can change its owner when that pod has ended");
  if (!evidence.pids.empty()) {
    return held(
        gpu, fmt::format("process {}", evidence.pids.front()),
        fmt::format("it can change its owner when that has ended; ps {}", evidence.pids.front()));
  }
  if (!evidence.withdrawn && entry->owner == Owner::Plugin) {
    return Error(Errc::Busy, fmt::format("{} is still offered to the kubelet; it is withdrawn "
                                         "first",
                                         gpu.text));
  }
  auto next = state_;
  for (auto& other : next.gpus) {
    if (other.gpu != gpu) continue;
    other.owner = owner;
    other.use = use;
  }
  return write(std::move(next));
}

Status OwnershipStore::claim(const Claim& claim) {
  GANTRY_CHECK(check_name("a claim's id", claim.id));
  GANTRY_CHECK(check_name("a claim's name", claim.what));
  if (claim.owner == Owner::Plugin) {
    return Error(Errc::Invalid, "the kubelet stores the plugin's claims, the ledger does not");
  }
  const auto* entry = state_.find(claim.gpu);
  if (entry == nullptr || entry->owner != claim.owner) {
    return Error(Errc::Denied,
                 fmt::format("{} cannot have {}: it belongs to {}", claim.what, claim.gpu.text,
                             entry == nullptr ? "no system" : to_string(entry->owner)));
  }
  for (const auto& other : state_.claims) {
    if (other == claim) return {};
    if (overlaps(other, claim)) return held(claim.gpu, other.what, "release that first");
  }
  if (state_.claims.size() >= kMaxClaims)
    return Error(Errc::Busy, "the ledger has too many claims");
  auto next = state_;
  next.claims.push_back(claim);
  return write(std::move(next));
}

Status OwnershipStore::release(std::string_view id) {
  auto next = state_;
  if (std::erase_if(next.claims, [&](const Claim& claim) { return claim.id == id; }) == 0)
    return {};
  return write(std::move(next));
}

Status OwnershipStore::forget(const model::GpuUuid& gpu) {
  for (const auto& claim : state_.claims) {
    if (claim.gpu == gpu) return held(gpu, claim.what, "release that first");
  }
  auto next = state_;
  if (std::erase_if(next.gpus, [&](const GpuOwnership& entry) { return entry.gpu == gpu; }) == 0)
    return {};
  return write(std::move(next));
}

}  // namespace gantry::ownership
