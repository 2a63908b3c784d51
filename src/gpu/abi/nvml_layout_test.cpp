// SPDX-License-Identifier: Apache-2.0

#include "gpu/abi/nvml.h"

#include <gtest/gtest.h>

#include <cstddef>

#define GANTRY_STRUCT(type, size) static_assert(sizeof(type) == (size), #type);
#define GANTRY_FIELD(type, member, offset) \
  static_assert(offsetof(type, member) == (offset), #type "::" #member);
#define GANTRY_CONSTANT(name, value) static_assert(static_cast<long long>(name) == (value), #name);
#include "gpu/abi/nvml_layout.def"

extern "C" int gantry_nvml_h_compiles_as_c(void);

TEST(NvmlHeader, AlsoCompilesAsC) {
  EXPECT_EQ(gantry_nvml_h_compiles_as_c(), 0);
}

TEST(NvmlHeader, VersionsOfStructsCarryTheirSize) {
  EXPECT_EQ(nvmlMemory_v2, 0x02000028U);
  EXPECT_EQ(nvmlGpuFabricInfo_v3 >> 24, 3U);
}
