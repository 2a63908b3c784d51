// SPDX-License-Identifier: Apache-2.0
// Any bytes give a message or an error, and a message reads back unchanged.
#include "gpu/mig_nvml/messages.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::mig_nvml;  // NOLINT(google-build-using-namespace): a program of its own
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto request = parse_request(text); request.ok())
    GANTRY_ASSERT(*parse_request(to_line(*request)) == *request);
  if (const auto answer = parse_answer(text); answer.ok())
    GANTRY_ASSERT(parse_answer(to_line(*answer)).ok());
  return 0;
}
