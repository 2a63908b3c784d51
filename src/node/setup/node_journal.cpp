// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.hpp"
#include "base/sys/replace_file.hpp"
#include "node/setup/node_internal.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gantry::setup {
namespace {

constexpr std::size_t kLimit = std::size_t{1} << 20;
constexpr std::array kDeeds{std::pair{Deed::Driver, "driver"},
                            std::pair{Deed::Inventory, "inventory"},
                            std::pair{Deed::Spec, "spec"},
                            std::pair{Deed::Moved, "moved"},
                            std::pair{Deed::Engine, "engine"},
                            std::pair{Deed::UnitFile, "unit-file"},
                            std::pair{Deed::UnitEnabled, "unit-enabled"}};

std::string_view word_of(Deed deed) {
  for (const auto& [other, word] : kDeeds) {
    if (other == deed) return word;
  }
  return "";
}

Result<Record> record_of(const json::Value& value) {
  const auto deed = value["deed"].string();
  auto subject = value["subject"].string();
  for (const auto& [other, word] : kDeeds) {
    if (deed == word && subject) return Record{other, *std::move(subject)};
  }
  return Error(Errc::Corrupt, fmt::format("{} is not one of our steps", value.raw().substr(0, 80)));
}

}  // namespace

Result<NodeJournal> NodeJournal::open(const sys::Host& host) {
  NodeJournal journal(host.outside(kNodeJournal));
  auto text = host.read(kNodeJournal, kLimit);
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
  std::string steps;
  for (const auto& record : records_) {
    steps += fmt::format("{}\n    {{\"deed\": \"{}\", \"subject\": {}}}", steps.empty() ? "" : ",",
                         word_of(record.deed), json::quoted(record.subject));
  }
  return sys::replace_file(path_, fmt::format("{{\n  \"steps\": [{}\n  ]\n}}\n", steps), 0600);
}

Status NodeJournal::add(const Record& record) {
  if (std::find(records_.begin(), records_.end(), record) != records_.end()) return {};
  records_.push_back(record);
  return write();
}

Status NodeJournal::drop(const Record& record) {
  std::erase(records_, record);
  return write();
}

}  // namespace gantry::setup
