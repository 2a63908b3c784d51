// SPDX-License-Identifier: Apache-2.0
#include "gpu/ownership/ownership_store.hpp"

#include "base/core/text.hpp"
#include "base/sys/descriptor.hpp"
#include "base/sys/kernel.hpp"
#include "base/sys/replace_file.hpp"
#include "gpu/ownership/fits.hpp"
#include "gpu/ownership/start_lock.hpp"
#include "gpu/procfs/gpus.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/chrono.h>
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

Error held(const model::PciAddress& gpu, const std::string& by, std::string_view helps) {
  return {Errc::Busy, fmt::format("{} is held by {}; {}", gpu.sysfs(), by, helps)};
}

Error unreadable(const std::string& path) {
  return {Errc::Corrupt,
          fmt::format("{0} cannot be read, so the owners of the GPUs are unknown. If no virtual "
                      "machine and no resource claim uses a GPU: mv {0} {0}.bad, and start again",
                      path)};
}

Error of_later_version(const std::string& path) {
  return {Errc::Unsupported,
          fmt::format("{} was written by a newer version of Gantry, so the owners of the GPUs are "
                      "unknown to this one (it reads up to version {}). Start the newer version "
                      "again",
                      path, kStateVersion)};
}

// What claims hold of a GPU, but of its parts in `kept`.
std::vector<Holding> holdings_of(const OwnershipState& state, const GpuOwnership& entry,
                                 std::span<const std::string> kept = {}) {
  std::vector<Holding> holdings;
  for (const auto& claim : state.claims) {
    if (claim.gpu != entry.gpu) continue;
    if (std::find(kept.begin(), kept.end(), claim.part) != kept.end()) continue;
    holdings.push_back(
        {.holder = claim.what, .mode = entry.use, .part = claim.part, .alone = claim.part.empty()});
  }
  return holdings;
}

const Claim* claim_on(const OwnershipState& state, const model::PciAddress& gpu) {
  const auto found = std::find_if(state.claims.begin(), state.claims.end(),
                                  [&](const Claim& claim) { return claim.gpu == gpu; });
  return found == state.claims.end() ? nullptr : &*found;
}

bool erase_intent(OwnershipState& state, const OwnerIntent& intent) {
  return std::erase_if(state.intents, [&](const OwnerIntent& written) {
           return is_same_change(written, intent);
         }) > 0;
}

Error unfinished(const OwnerIntent& intent) {
  return {Errc::Busy, fmt::format("the owner of {} is being changed: {}", intent.gpu.sysfs(),
                                  describe(intent))};
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
  if (replayed.later) return of_later_version(host.outside(path));
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
  if (replayed.later) return of_later_version(path_);
  if (!replayed.any) return unreadable(path_);
  state_ = std::move(replayed.state);
  if (replayed.damaged) {
    notes_.push_back(fmt::format("{} was damaged; the last complete record, number {}, is used",
                                 path_, state_.sequence));
    const auto kept = sys::replace_file(path_ + ".damaged", *text, 0600);
    if (!kept.ok()) notes_.push_back(kept.error().text());
    if (!replayed.former) return rewrite(to_record(state_));
  }
  if (replayed.former) {
    GANTRY_CHECK(sys::replace_file(path_ + ".version-1", *text, 0600).in("keeping the old ledger"));
    place_former_gpus(host);
    return rewrite(to_record(state_));
  }
  file_ = sys::UniqueFd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (!file_.valid()) return Error::sys(errno, fmt::format("open {}", path_));
  size_ = text->size();
  return {};
}

// The driver's own list has address and UUID of each GPU that it drives.
void OwnershipStore::place_former_gpus(const sys::Host& host) {
  const auto gpus = procfs::read_gpus(host);
  if (!gpus.ok()) return;  // the driver is not loaded; adopt() places them later
  for (const auto& entry : *gpus) {
    const auto& gpu = entry.information.gpu;
    if (state_.find_unplaced(gpu.uuid) != nullptr) identify(state_, gpu.pci, gpu.uuid);
  }
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

Status OwnershipStore::adopt(const model::PciAddress& gpu, const model::GpuUuid& uuid, Owner owner,
                             model::AllocationMode use) {
  if (uuid.text.size() > kMaxNameLength) return check_name("a GPU's UUID", uuid.text);
  auto next = state_;
  const bool changed = identify(next, gpu, uuid);
  if (next.find(gpu) == nullptr) {
    if (next.gpus.size() >= kMaxOwnedGpus)
      return Error(Errc::Invalid, "the ledger has too many GPUs");
    next.gpus.push_back({.gpu = gpu, .uuid = uuid, .owner = owner, .use = use});
    std::sort(next.gpus.begin(), next.gpus.end(),
              [](const GpuOwnership& a, const GpuOwnership& b) { return a.gpu < b.gpu; });
  } else if (!changed) {
    return {};
  }
  return write(std::move(next));
}

// The new owner gets the whole card, but for the kept parts: it fits only beside no holder at all.
Status OwnershipStore::check_change(const GpuOwnership& entry, const GpuUsage& evidence,
                                    std::span<const std::string> kept) const {
  auto holdings = holdings_of(state_, entry, kept);
  for (const auto& holder : evidence.holders) holdings.push_back({.holder = holder});
  for (const auto pid : evidence.pids)
    holdings.push_back({.holder = fmt::format("process {}", pid)});
  const Card card{.name = entry.gpu.sysfs(), .owner = entry.owner, .use = entry.use};
  const auto refusals =
      fits(card, holdings,
           {.owner = entry.owner, .holding = {.holder = "", .mode = entry.use, .alone = true}});
  if (!refusals.empty()) {
    const auto& first = refusals.front().holders.front();
    std::string remedy = "it can change its owner when that has ended";
    if (!evidence.pids.empty() && first == fmt::format("process {}", evidence.pids.front()))
      remedy += fmt::format("; ps {}", evidence.pids.front());
    return held(entry.gpu, first, remedy);
  }
  if (evidence.withdrawn || entry.owner != Owner::Plugin) return {};
  return Error(Errc::Busy, fmt::format("{} is still offered to the kubelet; it is withdrawn first",
                                       entry.gpu.sysfs()));
}

Status OwnershipStore::change(const model::PciAddress& gpu, Owner owner, model::AllocationMode use,
                              const GpuUsage& evidence) {
  const auto* entry = state_.find(gpu);
  if (entry == nullptr)
    return Error(Errc::NotFound, fmt::format("{} is not in the ledger", gpu.sysfs()));
  if (const auto* intent = state_.intent(gpu)) return unfinished(*intent);
  if (entry->owner == owner && entry->use == use) return {};
  GANTRY_CHECK(check_change(*entry, evidence));
  auto next = state_;
  for (auto& other : next.gpus) {
    if (other.gpu != gpu) continue;
    other.owner = owner;
    other.use = use;
  }
  return write(std::move(next));
}

Status OwnershipStore::begin(const OwnerIntent& intent, const GpuUsage& evidence) {
  GANTRY_CHECK(check_name("the command of a change", intent.what));
  const auto* entry = state_.find(intent.gpu);
  if (entry == nullptr)
    return Error(Errc::NotFound, fmt::format("{} is not in the ledger", intent.gpu.sysfs()));
  auto usage = evidence;
  if (const auto* earlier = state_.intent(intent.gpu)) {
    const bool repeats = earlier->to == intent.to && earlier->use == intent.use;
    if (!repeats && intent.to != entry->owner)
      return Error(Errc::Busy, fmt::format("{} was not finished", describe(*earlier)))
          .advise(fmt::format("repeat it or take it back first: {}", earlier->what));
    usage.withdrawn = true;  // a GPU with an intent is not offered
  }
  GANTRY_CHECK(check_change(*entry, usage, intent.kept));
  GANTRY_TRY(const auto lock, BeginLock::take(path_));
  auto next = state_;
  std::erase_if(next.intents, [&](const OwnerIntent& old) { return old.gpu == intent.gpu; });
  next.intents.push_back(intent);
  next.intents.back().resumes = state_.intent(intent.gpu) != nullptr;
  return write(std::move(next));
}

Status OwnershipStore::finish(const OwnerIntent& intent) {
  auto next = state_;
  if (!erase_intent(next, intent))
    return Error(Errc::NotFound, fmt::format("the ledger does not have {}", describe(intent)));
  for (auto& entry : next.gpus) {
    if (entry.gpu != intent.gpu) continue;
    entry.owner = intent.to;
    entry.use = intent.use;
  }
  return write(std::move(next));
}

Status OwnershipStore::cancel(const OwnerIntent& intent) {
  auto next = state_;
  if (!erase_intent(next, intent))
    return Error(Errc::NotFound, fmt::format("the ledger does not have {}", describe(intent)));
  return write(std::move(next));
}

Status OwnershipStore::drop(const OwnerIntent& intent) {
  const auto* written = state_.intent(intent.gpu);
  if (written != nullptr && written->resumes && is_same_change(*written, intent)) return {};
  return cancel(intent);
}

Status OwnershipStore::claim(const Claim& claim) {
  GANTRY_CHECK(check_name("a claim's id", claim.id));
  GANTRY_CHECK(check_name("a claim's name", claim.what));
  if (claim.part.size() > kMaxNameLength) return check_name("a claim's part", claim.part);
  if (claim.owner == Owner::Plugin) {
    return Error(Errc::Invalid, "the kubelet stores the plugin's claims, the ledger does not");
  }
  const auto* entry = state_.find(claim.gpu);
  if (entry == nullptr) {
    return Error(Errc::Denied,
                 fmt::format("{} cannot have {}: it has no owner", claim.what, claim.gpu.sysfs()));
  }
  if (std::find(state_.claims.begin(), state_.claims.end(), claim) != state_.claims.end())
    return {};
  const Card card{.name = claim.gpu.sysfs(),
                  .owner = entry->owner,
                  .use = entry->use,
                  .changing = state_.intent(claim.gpu) != nullptr};
  const HoldingRequest wanted{.owner = claim.owner,
                              .holding = {.holder = "",  // each claim is a holder of its own
                                          .mode = entry->use,
                                          .part = claim.part,
                                          .alone = claim.part.empty()}};
  const auto refusals = fits(card, holdings_of(state_, *entry), wanted);
  if (!refusals.empty()) {
    auto named = wanted;
    named.holding.holder = claim.what;
    auto error = to_error(refusals.front(), card, named);
    if (refusals.front().reason != CardRefusal::Reason::Held) return error;
    return std::move(error).advise("release that first");
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

Status OwnershipStore::forget(const model::PciAddress& gpu) {
  if (const auto* claim = claim_on(state_, gpu))
    return held(gpu, claim->what, "release that first");
  if (const auto* intent = state_.intent(gpu)) return unfinished(*intent);
  auto next = state_;
  if (std::erase_if(next.gpus, [&](const GpuOwnership& entry) { return entry.gpu == gpu; }) == 0)
    return {};
  return write(std::move(next));
}

std::string describe(const OwnerIntent& intent) {
  constexpr std::int64_t kEndOfYear9999 = 253'402'300'799;  // fmt throws for later times
  const auto since = std::clamp<std::int64_t>(intent.since_unix_seconds, 0, kEndOfYear9999);
  return fmt::format("`{}` (process {}, since {:%Y-%m-%d %H:%M:%S} UTC)", intent.what, intent.pid,
                     fmt::gmtime(static_cast<std::time_t>(since)));
}

}  // namespace gantry::ownership
