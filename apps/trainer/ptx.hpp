// SPDX-License-Identifier: Apache-2.0
// The trainer's kernels as PTX, which the driver compiles for its GPU. The simulated driver knows
// them by name and computes the same (sim/libcuda/training_kernels.cpp).
#pragma once

namespace gantry::workload {

// index = the thread's number; returns if it is not below %work.
#define GANTRY_THREAD_INDEX               \
  "  mov.u32 %a, %ctaid.x;\n"             \
  "  mov.u32 %b, %ntid.x;\n"              \
  "  mov.u32 %k, %tid.x;\n"               \
  "  mad.lo.u32 %index, %a, %b, %k;\n"    \
  "  setp.ge.u32 %past, %index, %work;\n" \
  "  @%past bra done;\n"

// scores[row, c] = sum over p of x[row, p] * w[p, c], one thread per score.
#define GANTRY_FORWARD                                                   \
  ".visible .entry gantryForward(\n"                                     \
  "  .param .u64 in_x, .param .u64 in_w, .param .u64 out_s,\n"           \
  "  .param .u32 n_rows, .param .u32 n_pixels, .param .u32 n_classes)\n" \
  "{\n"                                                                  \
  "  .reg .pred %past;\n"                                                \
  "  .reg .b32 %a, %b, %k, %index, %work, %pixels, %classes;\n"          \
  "  .reg .b64 %x, %w, %s, %offset, %line;\n"                            \
  "  .reg .f32 %sum, %p, %q;\n"                                          \
  "  ld.param.u32 %work, [n_rows];\n"                                    \
  "  ld.param.u32 %pixels, [n_pixels];\n"                                \
  "  ld.param.u32 %classes, [n_classes];\n"                              \
  "  mul.lo.u32 %work, %work, %classes;\n" GANTRY_THREAD_INDEX           \
  "  ld.param.u64 %x, [in_x];\n"                                         \
  "  ld.param.u64 %w, [in_w];\n"                                         \
  "  ld.param.u64 %s, [out_s];\n"                                        \
  "  cvta.to.global.u64 %x, %x;\n"                                       \
  "  cvta.to.global.u64 %w, %w;\n"                                       \
  "  cvta.to.global.u64 %s, %s;\n"                                       \
  "  mul.wide.u32 %offset, %index, 4;\n"                                 \
  "  add.s64 %s, %s, %offset;\n"                                         \
  "  div.u32 %a, %index, %classes;\n"                                    \
  "  rem.u32 %b, %index, %classes;\n"                                    \
  "  mul.lo.u32 %a, %a, %pixels;\n"                                      \
  "  mul.wide.u32 %offset, %a, 4;\n"                                     \
  "  add.s64 %x, %x, %offset;\n"                                         \
  "  mul.wide.u32 %offset, %b, 4;\n"                                     \
  "  add.s64 %w, %w, %offset;\n"                                         \
  "  mul.wide.u32 %line, %classes, 4;\n"                                 \
  "  mov.f32 %sum, 0f00000000;\n"                                        \
  "  mov.u32 %k, 0;\n"                                                   \
  "again:\n"                                                             \
  "  setp.ge.u32 %past, %k, %pixels;\n"                                  \
  "  @%past bra keep;\n"                                                 \
  "  ld.global.f32 %p, [%x];\n"                                          \
  "  ld.global.f32 %q, [%w];\n"                                          \
  "  fma.rn.f32 %sum, %p, %q, %sum;\n"                                   \
  "  add.s64 %x, %x, 4;\n"                                               \
  "  add.s64 %w, %w, %line;\n"                                           \
  "  add.u32 %k, %k, 1;\n"                                               \
  "  bra again;\n"                                                       \
  "keep:\n"                                                              \
  "  st.global.f32 [%s], %sum;\n"                                        \
  "done:\n"                                                              \
  "  ret;\n"                                                             \
  "}\n"

// delta[row, c] = (softmax of the row's scores - 1 if c is its label) / rows, one thread per row.
// The highest score is subtracted first, so that no power exceeds 1.
#define GANTRY_GRADIENT                                         \
  ".visible .entry gantrySoftmaxGradient(\n"                    \
  "  .param .u64 in_s, .param .u64 in_l, .param .u64 out_d,\n"  \
  "  .param .u32 n_rows, .param .u32 n_classes)\n"              \
  "{\n"                                                         \
  "  .reg .pred %past, %here;\n"                                \
  "  .reg .b32 %a, %b, %k, %index, %work, %classes, %label;\n"  \
  "  .reg .b64 %s, %l, %d, %offset, %from, %to;\n"              \
  "  .reg .f32 %high, %sum, %p, %rows;\n"                       \
  "  ld.param.u32 %work, [n_rows];\n"                           \
  "  ld.param.u32 %classes, [n_classes];\n" GANTRY_THREAD_INDEX \
  "  ld.param.u64 %s, [in_s];\n"                                \
  "  ld.param.u64 %l, [in_l];\n"                                \
  "  ld.param.u64 %d, [out_d];\n"                               \
  "  cvta.to.global.u64 %s, %s;\n"                              \
  "  cvta.to.global.u64 %l, %l;\n"                              \
  "  cvta.to.global.u64 %d, %d;\n"                              \
  "  mul.wide.u32 %offset, %index, 4;\n"                        \
  "  add.s64 %l, %l, %offset;\n"                                \
  "  ld.global.u32 %label, [%l];\n"                             \
  "  mul.lo.u32 %a, %index, %classes;\n"                        \
  "  mul.wide.u32 %offset, %a, 4;\n"                            \
  "  add.s64 %s, %s, %offset;\n"                                \
  "  add.s64 %d, %d, %offset;\n"                                \
  "  mov.f32 %high, 0fFF800000;\n"                              \
  "  mov.u64 %from, %s;\n"                                      \
  "  mov.u32 %k, 0;\n"                                          \
  "highest:\n"                                                  \
  "  setp.ge.u32 %past, %k, %classes;\n"                        \
  "  @%past bra powers;\n"                                      \
  "  ld.global.f32 %p, [%from];\n"                              \
  "  max.f32 %high, %high, %p;\n"                               \
  "  add.s64 %from, %from, 4;\n"                                \
  "  add.u32 %k, %k, 1;\n"                                      \
  "  bra highest;\n"                                            \
  "powers:\n"                                                   \
  "  mov.f32 %sum, 0f00000000;\n"                               \
  "  mov.u64 %from, %s;\n"                                      \
  "  mov.u64 %to, %d;\n"                                        \
  "  mov.u32 %k, 0;\n"                                          \
  "power:\n"                                                    \
  "  setp.ge.u32 %past, %k, %classes;\n"                        \
  "  @%past bra shares;\n"                                      \
  "  ld.global.f32 %p, [%from];\n"                              \
  "  sub.f32 %p, %p, %high;\n"                                  \
  "  mul.f32 %p, %p, 0f3FB8AA3B;\n" /* log2(e) */               \
  "  ex2.approx.f32 %p, %p;\n"                                  \
  "  st.global.f32 [%to], %p;\n"                                \
  "  add.f32 %sum, %sum, %p;\n"                                 \
  "  add.s64 %from, %from, 4;\n"                                \
  "  add.s64 %to, %to, 4;\n"                                    \
  "  add.u32 %k, %k, 1;\n"                                      \
  "  bra power;\n"                                              \
  "shares:\n"                                                   \
  "  cvt.rn.f32.u32 %rows, %work;\n"                            \
  "  mov.u64 %to, %d;\n"                                        \
  "  mov.u32 %k, 0;\n"                                          \
  "share:\n"                                                    \
  "  setp.ge.u32 %past, %k, %classes;\n"                        \
  "  @%past bra done;\n"                                        \
  "  ld.global.f32 %p, [%to];\n"                                \
  "  div.rn.f32 %p, %p, %sum;\n"                                \
  "  setp.eq.u32 %here, %k, %label;\n"                          \
  "  @%here sub.f32 %p, %p, 0f3F800000;\n"                      \
  "  div.rn.f32 %p, %p, %rows;\n"                               \
  "  st.global.f32 [%to], %p;\n"                                \
  "  add.s64 %to, %to, 4;\n"                                    \
  "  add.u32 %k, %k, 1;\n"                                      \
  "  bra share;\n"                                              \
  "done:\n"                                                     \
  "  ret;\n"                                                    \
  "}\n"

// w[p, c] -= rate * sum over rows of x[row, p] * delta[row, c], one thread per weight.
#define GANTRY_UPDATE                                                             \
  ".visible .entry gantryUpdate(\n"                                               \
  "  .param .u64 in_x, .param .u64 in_d, .param .u64 io_w, .param .u32 n_rows,\n" \
  "  .param .u32 n_pixels, .param .u32 n_classes, .param .f32 n_rate)\n"          \
  "{\n"                                                                           \
  "  .reg .pred %past;\n"                                                         \
  "  .reg .b32 %a, %b, %k, %index, %work, %rows, %pixels, %classes;\n"            \
  "  .reg .b64 %x, %d, %w, %offset, %next_x, %next_d;\n"                          \
  "  .reg .f32 %sum, %p, %q, %rate;\n"                                            \
  "  ld.param.u32 %rows, [n_rows];\n"                                             \
  "  ld.param.u32 %pixels, [n_pixels];\n"                                         \
  "  ld.param.u32 %classes, [n_classes];\n"                                       \
  "  ld.param.f32 %rate, [n_rate];\n"                                             \
  "  mul.lo.u32 %work, %pixels, %classes;\n" GANTRY_THREAD_INDEX                  \
  "  ld.param.u64 %x, [in_x];\n"                                                  \
  "  ld.param.u64 %d, [in_d];\n"                                                  \
  "  ld.param.u64 %w, [io_w];\n"                                                  \
  "  cvta.to.global.u64 %x, %x;\n"                                                \
  "  cvta.to.global.u64 %d, %d;\n"                                                \
  "  cvta.to.global.u64 %w, %w;\n"                                                \
  "  mul.wide.u32 %offset, %index, 4;\n"                                          \
  "  add.s64 %w, %w, %offset;\n"                                                  \
  "  div.u32 %a, %index, %classes;\n"                                             \
  "  rem.u32 %b, %index, %classes;\n"                                             \
  "  mul.wide.u32 %offset, %a, 4;\n"                                              \
  "  add.s64 %x, %x, %offset;\n"                                                  \
  "  mul.wide.u32 %offset, %b, 4;\n"                                              \
  "  add.s64 %d, %d, %offset;\n"                                                  \
  "  mul.wide.u32 %next_x, %pixels, 4;\n"                                         \
  "  mul.wide.u32 %next_d, %classes, 4;\n"                                        \
  "  mov.f32 %sum, 0f00000000;\n"                                                 \
  "  mov.u32 %k, 0;\n"                                                            \
  "again:\n"                                                                      \
  "  setp.ge.u32 %past, %k, %rows;\n"                                             \
  "  @%past bra keep;\n"                                                          \
  "  ld.global.f32 %p, [%x];\n"                                                   \
  "  ld.global.f32 %q, [%d];\n"                                                   \
  "  fma.rn.f32 %sum, %p, %q, %sum;\n"                                            \
  "  add.s64 %x, %x, %next_x;\n"                                                  \
  "  add.s64 %d, %d, %next_d;\n"                                                  \
  "  add.u32 %k, %k, 1;\n"                                                        \
  "  bra again;\n"                                                                \
  "keep:\n"                                                                       \
  "  ld.global.f32 %p, [%w];\n"                                                   \
  "  neg.f32 %rate, %rate;\n"                                                     \
  "  fma.rn.f32 %p, %rate, %sum, %p;\n"                                           \
  "  st.global.f32 [%w], %p;\n"                                                   \
  "done:\n"                                                                       \
  "  ret;\n"                                                                      \
  "}\n"

// best[row] = the first class with the highest score, one thread per row.
#define GANTRY_PREDICT                                                                  \
  ".visible .entry gantryPredict(\n"                                                    \
  "  .param .u64 in_s, .param .u64 out_b, .param .u32 n_rows, .param .u32 n_classes)\n" \
  "{\n"                                                                                 \
  "  .reg .pred %past, %higher;\n"                                                      \
  "  .reg .b32 %a, %b, %k, %index, %work, %classes, %found;\n"                          \
  "  .reg .b64 %s, %o, %offset;\n"                                                      \
  "  .reg .f32 %high, %p;\n"                                                            \
  "  ld.param.u32 %work, [n_rows];\n"                                                   \
  "  ld.param.u32 %classes, [n_classes];\n" GANTRY_THREAD_INDEX                         \
  "  ld.param.u64 %s, [in_s];\n"                                                        \
  "  ld.param.u64 %o, [out_b];\n"                                                       \
  "  cvta.to.global.u64 %s, %s;\n"                                                      \
  "  cvta.to.global.u64 %o, %o;\n"                                                      \
  "  mul.wide.u32 %offset, %index, 4;\n"                                                \
  "  add.s64 %o, %o, %offset;\n"                                                        \
  "  mul.lo.u32 %a, %index, %classes;\n"                                                \
  "  mul.wide.u32 %offset, %a, 4;\n"                                                    \
  "  add.s64 %s, %s, %offset;\n"                                                        \
  "  mov.f32 %high, 0fFF800000;\n"                                                      \
  "  mov.u32 %found, 0;\n"                                                              \
  "  mov.u32 %k, 0;\n"                                                                  \
  "again:\n"                                                                            \
  "  setp.ge.u32 %past, %k, %classes;\n"                                                \
  "  @%past bra keep;\n"                                                                \
  "  ld.global.f32 %p, [%s];\n"                                                         \
  "  setp.gt.f32 %higher, %p, %high;\n"                                                 \
  "  @%higher mov.f32 %high, %p;\n"                                                     \
  "  @%higher mov.u32 %found, %k;\n"                                                    \
  "  add.s64 %s, %s, 4;\n"                                                              \
  "  add.u32 %k, %k, 1;\n"                                                              \
  "  bra again;\n"                                                                      \
  "keep:\n"                                                                             \
  "  st.global.u32 [%o], %found;\n"                                                     \
  "done:\n"                                                                             \
  "  ret;\n"                                                                            \
  "}\n"

#define GANTRY_TRAINER_BODY \
  ".address_size 64\n" GANTRY_FORWARD GANTRY_GRADIENT GANTRY_UPDATE GANTRY_PREDICT

// Two headers: the first is for every GPU since Kepler, the second for drivers that no longer
// accept such old targets.
inline constexpr const char* kTrainerPtx[] = {
    ".version 3.0\n.target sm_30\n" GANTRY_TRAINER_BODY,
    ".version 6.3\n.target sm_75\n" GANTRY_TRAINER_BODY,
};

#undef GANTRY_THREAD_INDEX
#undef GANTRY_FORWARD
#undef GANTRY_GRADIENT
#undef GANTRY_UPDATE
#undef GANTRY_PREDICT
#undef GANTRY_TRAINER_BODY

}  // namespace gantry::workload
