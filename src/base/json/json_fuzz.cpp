// SPDX-License-Identifier: Apache-2.0
// Every accepted text can be patched, and the result is accepted again, with the change in it and
// the rest unchanged.
#include "base/json/patch.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using gantry::json::Document;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto document = Document::parse(text, gantry::json::Encoding::Any);
  if (!document.ok()) return 0;
  GANTRY_ASSERT(*gantry::json::Patch().apply(*document) == text);

  gantry::json::Patch patch;
  patch.set({"linux", "made \"here\""}, R"({"a":[1,{"b":null}]})");
  patch.append({"mounts"}, R"("added")");
  patch.remove({"process"});
  patch.remove({std::size_t{0}});
  const auto changed = patch.apply(*document);
  if (!changed.ok()) return 0;  // the path leads through a value that is not an object
  const auto again = Document::parse(*changed, gantry::json::Encoding::Any);
  GANTRY_ASSERT(again.ok());
  GANTRY_ASSERT(!(*again)["process"]);
  if (document->root().is(gantry::json::Kind::Object)) {
    GANTRY_ASSERT((*again)["linux"]["made \"here\""]["a"].size() == 2);
    const auto mounts = (*again)["mounts"];
    GANTRY_ASSERT(mounts.element(mounts.size() - 1).string() == "added");
  }
  return 0;
}
