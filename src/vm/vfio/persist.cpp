// SPDX-License-Identifier: Apache-2.0
#include "vm/vfio/persist.hpp"

#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "base/sys/kernel.hpp"
#include "vm/pci/read_bus.hpp"
#include "vm/vfio/unit_template_internal.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace gantry::vfio {
namespace {

using model::PciAddress;

constexpr std::uint64_t kPersistVersion = 1;
constexpr std::size_t kPersistLimit = std::size_t{1} << 20;
constexpr std::size_t kMaxCards = 512;
constexpr std::string_view kPackagedProgram = "/usr/bin/gantry";
constexpr std::string_view kUnitPath = "/etc/systemd/system/gantry-vfio.service";
constexpr std::string_view kWantsPath =
    "/etc/systemd/system/sysinit.target.wants/gantry-vfio.service";
constexpr std::string_view kPackagedUnit = "/usr/lib/systemd/system/gantry-vfio.service";

Error not_ours(std::string_view what) {
  return {Errc::Corrupt, fmt::format("{}: {}", kPersistPath, what)};
}

Result<std::uint16_t> parse_number(const json::Value& value, std::string_view name) {
  const auto number = value[name].u64();
  if (!number || *number > 0xffff) return not_ours(fmt::format("{} is missing", name));
  return static_cast<std::uint16_t>(*number);
}

Result<PersistedCard> parse_card(const json::Value& value) {
  PersistedCard card;
  const auto address = PciAddress::parse(value["address"].string_or_empty());
  if (!address) return not_ours("a card has no PCI address");
  card.address = *address;
  GANTRY_TRY(card.id.vendor, parse_number(value, "vendor"));
  GANTRY_TRY(card.id.device, parse_number(value, "device"));
  GANTRY_TRY(card.id.subsystem_vendor, parse_number(value, "subsystemVendor"));
  GANTRY_TRY(card.id.subsystem_device, parse_number(value, "subsystemDevice"));
  GANTRY_TRY(const auto revision, parse_number(value, "revision"));
  card.id.revision = static_cast<std::uint8_t>(revision & 0xffU);
  card.id.serial = value["serial"].string_or_empty();
  return card;
}

void write_card(json::Writer& out, const PersistedCard& card) {
  out.object([&] {
    out.member("address", card.address.sysfs());
    out.member("vendor", static_cast<unsigned>(card.id.vendor));
    out.member("device", static_cast<unsigned>(card.id.device));
    out.member("subsystemVendor", static_cast<unsigned>(card.id.subsystem_vendor));
    out.member("subsystemDevice", static_cast<unsigned>(card.id.subsystem_device));
    out.member("revision", static_cast<unsigned>(card.id.revision));
    out.member("serial", card.id.serial);
  });
}

// Remembers the directories above `path` that do not exist yet, the outermost first.
void note_missing(const sys::Host& host, std::string_view path, std::vector<std::string>& created) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part(path.substr(0, end));
    const bool known = std::find(created.begin(), created.end(), part) != created.end();
    if (!known && !host.link_info(part).ok()) created.push_back(part);
    if (end == std::string_view::npos) return;
  }
}

bool has_systemd(const sys::Host& host) {
  return host.exists("/run/systemd/system") || host.exists("/usr/lib/systemd/systemd") ||
         host.exists("/lib/systemd/systemd");
}

Status save_state(const PersistedState& state, const Effects& effects) {
  return effects.save(std::string(kPersistPath), to_json(state)).in("persisting");
}

Status enable_unit(const sys::Host& host, const PersistedState& state, const std::string& program,
                   const Effects& effects) {
  const bool packaged = host.exists(kPackagedUnit);
  // A unit of this name that Gantry did not create belongs to the administrator.
  const bool ours =
      std::find(state.created.begin(), state.created.end(), kUnitPath) != state.created.end();
  if (ours) GANTRY_CHECK(effects.save(std::string(kUnitPath), unit_text(program)));
  // Our own link instead of `systemctl enable`: it works in an image that is not running, and it is
  // taken back exactly.
  if (host.link_info(kWantsPath).ok()) return {};
  const std::string wants(kWantsPath);
  const auto kernel = sys::real_kernel();
  GANTRY_CHECK(kernel->make_directory(host, wants.substr(0, wants.rfind('/'))));
  return kernel->make_symlink(host, wants, std::string(packaged ? kPackagedUnit : kUnitPath));
}

// Removes a file, link or empty directory of ours. A directory that has other files now stays.
Status remove_created(const sys::Host& host, const std::string& path) {
  const auto info = host.link_info(path);
  if (!info.ok()) return {};
  if (info->kind != sys::FileKind::Directory) return sys::real_kernel()->remove_file(host, path);
  const auto slash = path.rfind('/');
  GANTRY_TRY(const auto parent,
             host.open(slash == 0 ? "/" : path.substr(0, slash), O_PATH | O_DIRECTORY));
  const auto name = path.substr(slash + 1);
  if (::unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) == 0) return {};
  if (errno == ENOTEMPTY || errno == EEXIST) return {};
  return Error::sys(errno, fmt::format("rmdir {}", host.outside(path)));
}

}  // namespace

std::string to_json(const PersistedState& state) {
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("version", kPersistVersion);
    out.array("cards", state.cards, [&](const PersistedCard& card) { write_card(out, card); });
    out.array("created", state.created);
  });
  return std::move(out).text() + "\n";
}

Result<PersistedState> parse_persisted(std::string text) {
  GANTRY_TRY(const auto document, json::Document::parse(std::move(text)));
  if (document["version"].u64() != kPersistVersion) return not_ours("its version is not 1");
  if (document["cards"].size() > kMaxCards) return not_ours("it has too many cards");
  PersistedState state;
  for (const auto value : document["cards"]) {
    GANTRY_TRY(auto card, parse_card(value));
    state.cards.push_back(std::move(card));
  }
  state.created = document["created"].strings();
  for (const auto& path : state.created) {
    const bool ours = std::string_view(kPersistPath).starts_with(path) ||
                      std::string_view(kWantsPath).starts_with(path) ||
                      std::string_view(kUnitPath).starts_with(path);
    if (!ours || path.size() < 2) return not_ours("it names a path that Gantry did not create");
  }
  return state;
}

Result<PersistedState> read_persisted(const sys::Host& host) {
  auto text = host.read(kPersistPath, kPersistLimit);
  if (!text.ok() && text.error().code() == Errc::NotFound) return PersistedState{};
  if (!text.ok()) return text.error();
  return parse_persisted(*std::move(text));
}

Status check_persist(const sys::Host& host, const std::string& program) {
  if (!has_systemd(host)) {
    return Error(Errc::Unsupported, "--persist needs systemd, and this machine does not have it")
        .advise(fmt::format("run `{} vfio bind` from the machine's own start scripts", program));
  }
  const auto persisted = read_persisted(host);
  return persisted.ok() ? Status{} : persisted.error();
}

Result<std::vector<std::string>> persist(const sys::Host& host,
                                         const std::vector<PciAddress>& targets,
                                         const std::string& program, const Effects& effects) {
  GANTRY_CHECK(check_persist(host, program));
  GANTRY_TRY(auto state, read_persisted(host));
  std::vector<std::string> notes;
  for (const auto& target : targets) {
    GANTRY_TRY(const auto id, pci::read_card_id(host, target));
    std::erase_if(state.cards, [&](const auto& card) { return card.address == target; });
    state.cards.push_back({.address = target, .id = id});
    if (id.serial.empty()) {
      notes.push_back(
          fmt::format("{} shows no serial number: after a reboot, a card of the same "
                      "type in its slot counts as this one",
                      target.sysfs()));
    }
  }
  std::sort(state.cards.begin(), state.cards.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  for (const auto path : {kPersistPath, kUnitPath, kWantsPath}) {
    if (path == kUnitPath && host.exists(kPackagedUnit)) continue;
    note_missing(host, path, state.created);
  }
  // The list of what is created comes first: whatever stops us, `forget` finds it.
  GANTRY_CHECK(save_state(state, effects));
  GANTRY_CHECK(enable_unit(host, state, program, effects));
  return notes;
}

Result<bool> forget(const sys::Host& host, const std::vector<PciAddress>& targets,
                    const Effects& effects) {
  GANTRY_TRY(auto state, read_persisted(host));
  const auto removed = std::erase_if(state.cards, [&](const auto& card) {
    return std::find(targets.begin(), targets.end(), card.address) != targets.end();
  });
  const bool left_over =
      state.cards.empty() && !state.created.empty();  // of a call that was killed
  if (removed == 0 && !left_over) return false;
  GANTRY_CHECK(save_state(state, effects));
  if (!state.cards.empty()) return true;
  // Files before their directories, and the file with this list last: after a crash, the next call
  // finds it.
  const auto place = [](const std::string& path) {
    const bool of_list = kPersistPath.starts_with(path);
    return std::pair(of_list ? 1 : 0, -static_cast<std::ptrdiff_t>(path.size()));
  };
  std::sort(state.created.begin(), state.created.end(),
            [&](const auto& x, const auto& y) { return place(x) < place(y); });
  for (const auto& path : state.created) GANTRY_CHECK(remove_created(host, path));
  return true;
}

Status check_persisted(const sys::Host& host, const PersistedCard& card) {
  const auto name = card.address.sysfs();
  const auto found = pci::read_card_id(host, card.address);
  if (!found.ok()) {
    return Error(Errc::NotFound,
                 fmt::format("the slot {} is empty; {} was in it", name, pci::to_string(card.id)))
        .advise(fmt::format("gantry vfio release {}", name));
  }
  if (pci::same_card(*found, card.id)) return {};
  return Error(Errc::Denied,
               fmt::format("the slot {} holds another card than the one that was given to virtual "
                           "machines: {}, not {}",
                           name, pci::to_string(*found), pci::to_string(card.id)))
      .advise(fmt::format("gantry vfio release {0}; to give this card: gantry vfio bind --persist "
                          "{0}",
                          name));
}

std::string unit_text(const std::string& program) {
  std::string text(unit_template());
  const auto at = text.find(kPackagedProgram);
  if (at != std::string::npos) text.replace(at, kPackagedProgram.size(), program);
  return text;
}

}  // namespace gantry::vfio
