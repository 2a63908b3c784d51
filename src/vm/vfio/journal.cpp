// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/journal.hpp"

#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "base/sys/kernel.hpp"
#include "base/sys/shell_command.hpp"

#include <sys/file.h>

#include <fmt/format.h>

#include <cerrno>

namespace gantry::vfio {
namespace {

using model::PciAddress;

constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kJournalLimit = std::size_t{1} << 20;
constexpr std::size_t kMaxMoves = 1024;
constexpr std::string_view kJournalEnd = ".journal";
constexpr std::string_view kBoundEnd = ".bound";

void write_addresses(json::Writer& out, std::string_view name,
                     const std::vector<PciAddress>& addresses) {
  out.array(name, addresses, [&](const PciAddress& address) { out.value(address.sysfs()); });
}

void write_move(json::Writer& out, const FunctionMove& move) {
  out.object([&] {
    out.member("address", move.address.sysfs());
    out.member("target", move.target.sysfs());
    out.member("vendor", static_cast<unsigned>(move.id.vendor));
    out.member("device", static_cast<unsigned>(move.id.device));
    out.member("subsystemVendor", static_cast<unsigned>(move.id.subsystem_vendor));
    out.member("subsystemDevice", static_cast<unsigned>(move.id.subsystem_device));
    out.member("revision", static_cast<unsigned>(move.id.revision));
    out.member("serial", move.id.serial);
    out.member("fromDriver", move.from_driver);
    out.member("fromOverride", move.from_override);
    out.member("toDriver", move.to_driver);
    out.member("toOverride", move.to_override);
    out.member("power", move.power);
  });
}

Error not_a_journal(std::string_view what) {
  return {Errc::Corrupt, fmt::format("it is not a journal of Gantry: {}", what)};
}

Result<PciAddress> parse_address(const json::Value& value) {
  const auto address = PciAddress::parse(value.string_or_empty());
  if (!address) return not_a_journal("a PCI address is missing");
  return *address;
}

Result<std::vector<PciAddress>> parse_addresses(const json::Value& values) {
  std::vector<PciAddress> addresses;
  for (const auto value : values) {
    GANTRY_TRY(const auto address, parse_address(value));
    addresses.push_back(address);
  }
  return addresses;
}

// A driver's name becomes part of a path that is written to.
Result<std::string> parse_driver(const json::Value& value) {
  const auto name = value.string();
  const bool plain = name && name->size() < 128 && name->find_first_of("/\n") == name->npos &&
                     *name != "." && *name != "..";
  if (!plain) return not_a_journal("a driver's name is missing or not valid");
  return *name;
}

std::uint16_t parse_id(const json::Value& value) {
  const auto number = value.u64();
  return number && *number <= 0xffff ? static_cast<std::uint16_t>(*number) : std::uint16_t{0};
}

Result<FunctionMove> parse_move(const json::Value& value) {
  FunctionMove move;
  GANTRY_TRY(move.address, parse_address(value["address"]));
  GANTRY_TRY(move.target, parse_address(value["target"]));
  move.id = {.vendor = parse_id(value["vendor"]),
             .device = parse_id(value["device"]),
             .subsystem_vendor = parse_id(value["subsystemVendor"]),
             .subsystem_device = parse_id(value["subsystemDevice"]),
             .revision = static_cast<std::uint8_t>(parse_id(value["revision"]) & 0xffU),
             .serial = value["serial"].string_or_empty()};
  GANTRY_TRY(move.from_driver, parse_driver(value["fromDriver"]));
  GANTRY_TRY(move.from_override, parse_driver(value["fromOverride"]));
  GANTRY_TRY(move.to_driver, parse_driver(value["toDriver"]));
  GANTRY_TRY(move.to_override, parse_driver(value["toOverride"]));
  const auto power = value["power"].string_or_empty();
  if (power == "auto" || power == "on") move.power = power;
  return move;
}

// nullopt if the file does not exist. Another Gantry removes it when its work has ended.
Result<std::optional<Journal>> read_one(const sys::Host& host, const std::string& path) {
  const auto text = host.read(path, kJournalLimit);
  if (!text.ok() && text.error().code() == Errc::NotFound) return std::optional<Journal>();
  if (!text.ok()) return text.error();
  auto journal = parse_journal(*text);
  if (journal.ok()) return std::optional(*std::move(journal));
  return Error(Errc::Corrupt, fmt::format("{}: {}", host.outside(path), journal.error().cause()))
      .advise(fmt::format("look at the drivers with `lspci -nnk -d 10de:`, set them right by hand, "
                          "then: sudo rm {}",
                          sys::shell_word(host.outside(path))));
}

Result<std::vector<Journal>> read_all(const sys::Host& host, std::string_view ending) {
  std::vector<Journal> found;
  const auto names = host.list(kStateDirectory);
  if (!names.ok()) {
    if (names.error().code() == Errc::NotFound) return found;
    return names.error();
  }
  for (const auto& name : *names) {
    if (!name.ends_with(ending) || name.starts_with('.')) continue;
    GANTRY_TRY(auto journal, read_one(host, fmt::format("{}/{}", kStateDirectory, name)));
    if (journal) found.push_back(*std::move(journal));
  }
  return found;
}

}  // namespace

std::string to_json(const Journal& journal) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("version", kVersion);
    out.member("kind", journal.kind);
    write_addresses(out, "targets", journal.targets);
    out.array("moves", journal.moves, [&](const FunctionMove& move) { write_move(out, move); });
    out.array("modules", journal.modules);
    out.array("companions", journal.companions);
    out.array("services", journal.services);
    write_addresses(out, "persistence", journal.persistence);
    out.array("nodes", journal.nodes);
    out.member("step", journal.step);
    out.member("backwards", journal.backwards);
    write_addresses(out, "stuck", journal.stuck);
  });
  return std::move(out).text() + "\n";
}

Result<Journal> parse_journal(std::string text) {
  GANTRY_TRY(const auto document, json::Document::parse(std::move(text)));
  const auto root = document.root();
  if (root["version"].u64() != kVersion) return not_a_journal("its version is not 1");
  Journal journal;
  journal.kind = root["kind"].string_or_empty();
  if (journal.kind != "bind" && journal.kind != "release")
    return not_a_journal("it is neither a bind nor a release");
  GANTRY_TRY(journal.targets, parse_addresses(root["targets"]));
  if (journal.targets.empty()) return not_a_journal("it names no GPU");
  if (root["moves"].size() > kMaxMoves) return not_a_journal("it has too many functions");
  for (const auto value : root["moves"]) {
    GANTRY_TRY(auto move, parse_move(value));
    journal.moves.push_back(std::move(move));
  }
  journal.modules = root["modules"].strings();
  journal.companions = root["companions"].strings();  // absent in journals of older versions
  journal.services = root["services"].strings();
  GANTRY_TRY(journal.persistence, parse_addresses(root["persistence"]));
  journal.nodes = root["nodes"].strings();
  const auto step = root["step"].u64();
  if (!step || *step > 16 * kMaxMoves) return not_a_journal("its step is missing");
  journal.step = *step;
  journal.backwards = root["backwards"].boolean().value_or(false);
  GANTRY_TRY(journal.stuck, parse_addresses(root["stuck"]));
  return journal;
}

std::string journal_path(const Journal& journal) {
  return fmt::format("{}/{}{}", kStateDirectory, journal.targets.front().sysfs(), kJournalEnd);
}

std::string bound_path(const PciAddress& target) {
  return fmt::format("{}/{}{}", kStateDirectory, target.sysfs(), kBoundEnd);
}

Result<std::vector<Journal>> read_journals(const sys::Host& host) {
  return read_all(host, kJournalEnd).in("reading the journal");
}

Result<std::vector<Journal>> read_bound(const sys::Host& host) {
  return read_all(host, kBoundEnd).in("reading the record of a bound GPU");
}

Result<std::optional<Journal>> read_bound(const sys::Host& host, const PciAddress& target) {
  return read_one(host, bound_path(target)).in("reading the record of a bound GPU");
}

Result<sys::UniqueFd> lock_state(const sys::Host& host) {
  const std::string directory(kStateDirectory);
  GANTRY_CHECK(sys::real_kernel()->make_directory(host, directory));
  GANTRY_TRY(const auto fd, host.open(directory, O_RDONLY | O_DIRECTORY));
  sys::UniqueFd lock(::openat(fd.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  const auto shown = host.outside(directory + "/lock");
  if (!lock.valid()) return Error::sys(errno, fmt::format("open {}", shown));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return Error::sys(errno, fmt::format("flock {}", shown));
  return Error(Errc::Busy, "another Gantry is changing the drivers of GPUs on this machine")
      .advise(
          fmt::format("wait for it, or find it with: sudo fuser -v {}", sys::shell_word(shown)));
}

}  // namespace gantry::vfio
