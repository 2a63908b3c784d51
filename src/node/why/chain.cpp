// SPDX-License-Identifier: Apache-2.0
#include "node/why/chain.hpp"

#include "base/core/printable.hpp"
#include "base/json/document.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::why {
namespace {

// What strangers wrote is shown in part: an environment variable may have megabytes.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 800;
  return text.size() <= kMost ? printable(text) : printable(text.substr(0, kMost)) + "...";
}

std::string json_text(std::string_view text) {
  return json::quoted(shown(text));
}

std::string_view color_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Holds: return "\x1b[32m";
    case Verdict::Broken: return "\x1b[31m";
    case Verdict::Doubtful: return "\x1b[33m";
    case Verdict::Unknown: break;
  }
  return "\x1b[2m";
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Holds: return "ok";
    case Verdict::Broken: return "BROKEN";
    case Verdict::Doubtful: return "look";
    case Verdict::Unknown: break;
  }
  return "?";
}

const Link* Chain::first(Verdict verdict) const {
  const auto found = std::find_if(links.begin(), links.end(),
                                  [&](const Link& link) { return link.verdict == verdict; });
  return found == links.end() ? nullptr : &*found;
}

const Link* Chain::first_broken() const {
  return first(Verdict::Broken);
}

// Names and messages come from pods: nothing of theirs may steer a terminal.
std::string to_text(const Chain& chain, bool color) {
  auto text = shown(chain.subject) + "\n";
  for (const auto& link : chain.links) {
    const auto word = fmt::format("{:6}", to_string(link.verdict));
    text += color ? fmt::format("  {}{}\x1b[0m", color_of(link.verdict), word) : "  " + word;
    text += fmt::format("  {:34}  {}\n", shown(link.what), shown(link.read));
    if (link.verdict == Verdict::Doubtful && !link.cause.empty())
      text += fmt::format("          {}\n", shown(link.cause));
  }
  const auto* broken = chain.first_broken();
  const auto* look = chain.first(Verdict::Doubtful);
  if (broken == nullptr) text += "\nNothing found that keeps GPUs from it.\n";
  if (broken != nullptr) text += fmt::format("\nWhy: {}\n", shown(broken->cause));
  const auto* mend = broken != nullptr ? broken : look;
  if (mend != nullptr && !mend->remedy.empty())
    text += fmt::format("{} {}\n", mend == broken ? "Do: " : "Perhaps:", shown(mend->remedy));
  return text;
}

std::string to_json(const Chain& chain) {
  std::string links;
  for (const auto& link : chain.links)
    links += fmt::format(R"({}{{"id":{},"what":{},"verdict":{},"read":{},"cause":{},"remedy":{}}})",
                         links.empty() ? "" : ",", json_text(link.id), json_text(link.what),
                         json_text(to_string(link.verdict)), json_text(link.read),
                         json_text(link.cause), json_text(link.remedy));
  const auto id = [&](Verdict verdict) {
    const auto* link = chain.first(verdict);
    return link == nullptr ? std::string("null") : json_text(link->id);
  };
  return fmt::format(R"({{"subject":{},"broken":{},"look":{},"links":[{}]}})"
                     "\n",
                     json_text(chain.subject), id(Verdict::Broken), id(Verdict::Doubtful), links);
}

}  // namespace gantry::why
