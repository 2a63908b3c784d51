// SPDX-License-Identifier: Apache-2.0
// A kernel module as bytes, for trees and tests that need no compiler.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::kernel_module {

struct ModuleImage {
  // The section .modinfo, "key=value" each.
  std::vector<std::string> info{};
  std::string section = ".modinfo";
  std::uint16_t machine = 62;
  std::uint16_t type = 1;
  bool is_32bit = false;
  std::string signature{};  // PKCS#7; nothing is appended if it is empty
};

std::string module_image(const ModuleImage& image);

// "nvidia" for a release, as the driver's own build makes it.
std::string nvidia_module(std::string_view name, std::string_view release, std::string_view version,
                          std::string_view license = "NVIDIA", std::string_view signature = "");

// What follows the bytes of a signature in a module.
std::string signature_trailer(std::uint32_t size, std::uint8_t id_type = 2);

// Signatures of sign-file's form by "Example Corp: Driver signing", serial b1c2d3e4f50617: with
// that name, and with the key's id instead of it.
std::string example_signature();
std::string example_signature_with_key_id();
// The certificate of that key.
std::string example_certificate();
inline constexpr std::string_view kExampleSigner = "Example Corp: Driver signing";
inline constexpr std::string_view kExampleSerial = "b1c2d3e4f50617";
inline constexpr std::string_view kExampleKeyId = "554ab53aeb582ddad4238f95e6317beadc6b477b";

}  // namespace gantry::kernel_module
