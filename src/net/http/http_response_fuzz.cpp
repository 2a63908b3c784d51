// SPDX-License-Identifier: Apache-2.0
// A response means the same in one piece and byte by byte.
#include "net/http/reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  gantry::http::ResponseReader whole;
  std::string body;
  const auto fed = whole.feed(text, body);

  gantry::http::ResponseReader slow;
  std::string slow_body;
  bool failed = false;
  for (const char& byte : text) {
    if (!slow.feed({&byte, 1}, slow_body).ok()) {
      failed = true;
      break;
    }
  }
  GANTRY_ASSERT(failed == !fed.ok());
  GANTRY_ASSERT(!fed.ok() || (body == slow_body && whole.done() == slow.done()));
  return 0;
}
