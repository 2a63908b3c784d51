// SPDX-License-Identifier: Apache-2.0
// First line: a path; the rest: a document. Set and remove must terminate and make exactly the
// requested change.
#include "base/toml_edit/document.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto newline = text.find('\n');
  const auto path = toml_edit::parse_path(text.substr(0, newline));
  if (!path.ok() || newline == std::string_view::npos) return 0;
  auto document = toml_edit::Document::parse(std::string(text.substr(newline + 1)));
  if (!document.ok()) return 0;
  (void)document->members(*path);
  if (document->set(*path, "\"x\"").ok() && document->string(*path) != "x") __builtin_trap();
  if (document->remove(*path).ok() && document->string(*path)) __builtin_trap();
  return 0;
}
