// SPDX-License-Identifier: Apache-2.0
// Every decoder of the kubelet's messages. Whatever one accepts, encoded again, decodes to the
// same.
#include "node/kubelet/messages.hpp"
#include "node/kubelet/pod_resources.hpp"
#include "node/kubelet/runtime_version.hpp"
#include "support/kubelet_messages.hpp"

#include <cstdint>

namespace {

template <class Decode, class Encode>
void there_and_back(std::string_view bytes, Decode decode, Encode encode) {
  const auto once = decode(bytes);
  if (!once.ok()) return;
  const std::string again = encode(*once);
  const auto twice = decode(again);
  GANTRY_ASSERT(twice.ok());
  GANTRY_ASSERT(encode(*twice) == again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gantry::kubelet;  // NOLINT: every decoder in one place
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 10) {
    case 0:
      there_and_back(bytes, decode_options, [](const auto& value) { return encode(value); });
      break;
    case 1:
      there_and_back(bytes, decode_register, [](const auto& value) { return encode(value); });
      break;
    case 2: there_and_back(bytes, decode_list, encode_list); break;
    case 3: there_and_back(bytes, decode_preferred_request, encode_preferred_request); break;
    case 4: there_and_back(bytes, decode_preferred_answer, encode_preferred_answer); break;
    case 5: there_and_back(bytes, decode_allocate_request, encode_allocate_request); break;
    case 6: there_and_back(bytes, decode_allocate_answer, encode_allocate_answer); break;
    case 7: there_and_back(bytes, decode_pod_resources, encode_pod_resources); break;
    case 8: there_and_back(bytes, decode_allocatable, encode_allocatable); break;
    default: static_cast<void>(decode_runtime_version(bytes).ok());
  }
  return 0;
}
