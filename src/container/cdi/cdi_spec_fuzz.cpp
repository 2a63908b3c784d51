// SPDX-License-Identifier: Apache-2.0
// Any bytes give an error, or a specification that is equal after it is written and read again.
#include "container/cdi/read.hpp"
#include "container/cdi/spec_text.hpp"
#include "container/cdi/version.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::cdi;
  const auto spec = load_spec({reinterpret_cast<const char*>(data), size}, "fuzz.yaml");
  if (!spec.ok()) return 0;
  GANTRY_ASSERT(lowest_version(*spec) <= *parse_version(spec->version));
  for (const auto format : {Format::Yaml, Format::Json}) {
    const auto again = load_spec(to_text(*spec, format), "again");
    GANTRY_ASSERT(again.ok());
    GANTRY_ASSERT(*again == *spec);
  }
  return 0;
}
