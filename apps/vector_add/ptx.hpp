// SPDX-License-Identifier: Apache-2.0
// The kernel as PTX, which the driver compiles for its GPU.
#pragma once

namespace gantry::workload {

// c[i] = a[i] + b[i] for i < n, one thread each. There are two headers for the same body: the first
// is for every GPU since Kepler, the second for drivers that no longer accept such old targets.
#define GANTRY_VECTOR_ADD_BODY                                                    \
  ".address_size 64\n"                                                            \
  ".visible .entry vectorAdd(\n"                                                  \
  "  .param .u64 in_a, .param .u64 in_b, .param .u64 out_c, .param .u32 count)\n" \
  "{\n"                                                                           \
  "  .reg .pred %past;\n"                                                         \
  "  .reg .b32 %index, %block, %size, %thread, %n;\n"                             \
  "  .reg .b64 %a, %b, %c, %offset;\n"                                            \
  "  .reg .f32 %x, %y;\n"                                                         \
  "  mov.u32 %block, %ctaid.x;\n"                                                 \
  "  mov.u32 %size, %ntid.x;\n"                                                   \
  "  mov.u32 %thread, %tid.x;\n"                                                  \
  "  mad.lo.s32 %index, %block, %size, %thread;\n"                                \
  "  ld.param.u32 %n, [count];\n"                                                 \
  "  setp.ge.s32 %past, %index, %n;\n"                                            \
  "  @%past bra done;\n"                                                          \
  "  ld.param.u64 %a, [in_a];\n"                                                  \
  "  ld.param.u64 %b, [in_b];\n"                                                  \
  "  ld.param.u64 %c, [out_c];\n"                                                 \
  "  cvta.to.global.u64 %a, %a;\n"                                                \
  "  cvta.to.global.u64 %b, %b;\n"                                                \
  "  cvta.to.global.u64 %c, %c;\n"                                                \
  "  mul.wide.s32 %offset, %index, 4;\n"                                          \
  "  add.s64 %a, %a, %offset;\n"                                                  \
  "  add.s64 %b, %b, %offset;\n"                                                  \
  "  add.s64 %c, %c, %offset;\n"                                                  \
  "  ld.global.f32 %x, [%a];\n"                                                   \
  "  ld.global.f32 %y, [%b];\n"                                                   \
  "  add.f32 %x, %x, %y;\n"                                                       \
  "  st.global.f32 [%c], %x;\n"                                                   \
  "done:\n"                                                                       \
  "  ret;\n"                                                                      \
  "}\n"

inline constexpr const char* kVectorAddPtx[] = {
    ".version 3.0\n.target sm_30\n" GANTRY_VECTOR_ADD_BODY,
    ".version 6.3\n.target sm_75\n" GANTRY_VECTOR_ADD_BODY,
};

#undef GANTRY_VECTOR_ADD_BODY

}  // namespace gantry::workload
