// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.hpp"
#include "base/json/writer.hpp"
#include "base/sys/replace_file.hpp"
#include "node/setup/node_setup_internal.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gantry::setup {
namespace {

constexpr std::size_t kMaxJournalBytes = std::size_t{1} << 20;
constexpr std::array kSetupActions{std::pair{SetupAction::Driver, "driver"},
                                   std::pair{SetupAction::Inventory, "inventory"},
                                   std::pair{SetupAction::Spec, "spec"},
                                   std::pair{SetupAction::Moved, "moved"},
                                   std::pair{SetupAction::Engine, "engine"},
                                   std::pair{SetupAction::UnitFile, "unit-file"},
                                   std::pair{SetupAction::UnitEnabled, "unit-enabled"}};

std::string_view to_string(SetupAction action) {
  for (const auto& [other, word] : kSetupActions) {
    if (other == action) return word;
  }
  return "";
}

Result<JournalEntry> record_of(const json::Value& value) {
  const auto action = value["deed"].string();
  auto subject = value["subject"].string();
  for (const auto& [other, word] : kSetupActions) {
    if (action == word && subject) return JournalEntry{other, *std::move(subject)};
  }
  return Error(Errc::Corrupt, fmt::format("{} is not a known step", value.raw().substr(0, 80)));
}

}  // namespace

Result<NodeJournal> NodeJournal::open(const sys::Host& host) {
  NodeJournal journal(host.outside(kNodeJournal));
  auto text = host.read(kNodeJournal, kMaxJournalBytes);
  if (!text.ok() && text.error().code() == Errc::NotFound) return journal;
  GANTRY_CHECK(text);
  GANTRY_TRY(const auto document,
             json::Document::parse(*std::move(text)).in(std::string(kNodeJournal)));
  for (const auto value : document["steps"]) {
    GANTRY_TRY(auto record, record_of(value).in(std::string(kNodeJournal)));
    journal.records_.push_back(std::move(record));
  }
  return journal;
}

Status NodeJournal::write() const {
  if (records_.empty()) {
    if (::unlink(path_.c_str()) == 0 || errno == ENOENT) return {};
    return Error::sys(errno, "removing " + path_);
  }
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.rows("steps", records_, [&](const JournalEntry& record) {
      out.object([&] {
        out.member("deed", to_string(record.action));
        out.member("subject", record.subject);
      });
    });
  });
  return sys::replace_file(path_, out.text() + "\n", 0600);
}

Status NodeJournal::add(const JournalEntry& record) {
  if (std::find(records_.begin(), records_.end(), record) != records_.end()) return {};
  records_.push_back(record);
  return write();
}

Status NodeJournal::drop(const JournalEntry& record) {
  std::erase(records_, record);
  return write();
}

}  // namespace gantry::setup
