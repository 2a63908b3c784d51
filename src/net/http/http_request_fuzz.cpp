// SPDX-License-Identifier: Apache-2.0
// Requests mean the same in one piece and byte by byte.
#include "base/core/result.hpp"
#include "net/http/request_reader.hpp"

namespace {

std::string requests_of(std::string_view bytes, std::size_t step) {
  gantry::http::RequestReader reader({.head = 512, .body = 256});
  using State = gantry::http::RequestReader::State;
  std::string in;
  std::string seen;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    in.append(bytes.substr(at, step));
    while (reader.feed(in) == State::Whole) {
      const auto request = reader.take();
      seen += request.method + request.target + request.body + "\n";
    }
    if (reader.state() == State::Bad) return seen + "bad";
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  GANTRY_ASSERT(size == 0 || requests_of(text, size) == requests_of(text, 1));
  return 0;
}
