// SPDX-License-Identifier: Apache-2.0
#include "why/chain.hpp"

#include "base/printable.hpp"
#include "json/document.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::why {
namespace {

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

const Link* Chain::first_broken() const {
  const auto found = std::find_if(links.begin(), links.end(),
                                  [](const Link& link) { return link.verdict == Verdict::Broken; });
  return found == links.end() ? nullptr : &*found;
}

// Names and messages come from pods: nothing of theirs may steer a terminal.
std::string to_text(const Chain& chain, bool color) {
  auto text = printable(chain.subject) + "\n";
  for (const auto& link : chain.links) {
    const auto word = fmt::format("{:6}", to_string(link.verdict));
    text += color ? fmt::format("  {}{}\x1b[0m", color_of(link.verdict), word) : "  " + word;
    text += fmt::format("  {:34}  {}\n", link.what, printable(link.read));
    if (link.verdict == Verdict::Doubtful && !link.cause.empty())
      text += fmt::format("          {}\n", printable(link.cause));
  }
  const auto* broken = chain.first_broken();
  if (broken == nullptr) return text + "\nNothing found that keeps GPUs from it.\n";
  text += fmt::format("\nWhy: {}\n", printable(broken->cause));
  if (!broken->remedy.empty()) text += fmt::format("Do:  {}\n", printable(broken->remedy));
  return text;
}

std::string to_json(const Chain& chain) {
  std::string links;
  for (const auto& link : chain.links)
    links += fmt::format(R"({}{{"id":{},"what":{},"verdict":{},"read":{},"cause":{},"remedy":{}}})",
                         links.empty() ? "" : ",", json::quoted(link.id), json::quoted(link.what),
                         json::quoted(to_string(link.verdict)), json::quoted(link.read),
                         json::quoted(link.cause), json::quoted(link.remedy));
  const auto* broken = chain.first_broken();
  return fmt::format(R"({{"subject":{},"broken":{},"links":[{}]}})"
                     "\n",
                     json::quoted(chain.subject), broken ? json::quoted(broken->id) : "null",
                     links);
}

}  // namespace gantry::why
