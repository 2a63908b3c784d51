// SPDX-License-Identifier: Apache-2.0
// Names of vGPU types, and the text in which the two kernel interfaces list them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::vgpu {

// "A100-10C" shares the GPU by time; "A100-1-5CME" is one MIG instance of one slice.
struct TypeName {
  std::string gpu;                 // "A100", "RTX6000-Ada"
  std::optional<unsigned> slices;  // of the GPU instance; nullopt: time-sliced
  unsigned gigabytes = 0;
  std::string series;     // A, B, C or Q: what the licence is for; also B4
  std::string attribute;  // "", "ME", "NOME", "MEALL", "GFX": of the MIG profile
  bool mig_backed() const { return slices.has_value(); }
  bool operator==(const TypeName&) const = default;
};

// nullopt if the text is not the name of a vGPU type.
std::optional<TypeName> parse_type_name(std::string_view key);

// The same name without the attribute, for a GPU whose types have none.
std::string without_attribute(const TypeName& type);

// The GPU instance profile that a MIG-backed type needs: "1g.5gb", "1g.10gb+me"; "" if it needs
// none.
std::string mig_profile(const TypeName& type);

// The word that configurations use: "NVIDIA A10-4Q" and "GRID T4-8C" give "A10-4Q" and "T4-8C".
std::string type_key(std::string_view name);

struct ListedType {
  std::string id;    // "592"
  std::string name;  // "NVIDIA A10-4Q"
  bool operator==(const ListedType&) const = default;
};

inline constexpr std::size_t kMaxTypes = 256;

// The file creatable_vgpu_types. Drivers write "ID : NAME" or "NAME  ID"; both are read. Lines
// without a number, such as the header, are skipped.
std::vector<ListedType> parse_creatable_types(std::string_view text);

struct TypeDescription {
  std::uint64_t framebuffer_mib = 0;  // 0: not given
  unsigned max_instances = 0;         // 0: not given
};
// "num_heads=4, frl_config=60, framebuffer=4096M, max_resolution=7680x4320, max_instance=6"
TypeDescription parse_description(std::string_view text);

// 36 characters, hexadecimal, lower or upper case.
bool is_uuid(std::string_view text);

}  // namespace gantry::vgpu
