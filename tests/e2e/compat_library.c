// SPDX-License-Identifier: Apache-2.0
// A libcuda of a newer driver, as images with forward compatibility bring it: it sees 42 GPUs, so
// that it is told from the machine's. DRIVERS: the branches that its note allows, "580".
__asm__(
    ".pushsection .note.cuda.fwd_compatibility, \"a\", @note\n"
    ".balign 4\n"
    ".long 2f - 1f, 4f - 3f, 1\n"
    "1: .asciz \"NVIDIA Corporation\"\n"
    "2: .balign 4\n"
    "3: .ascii \"{\\\"format\\\":1,\\\"CUDA version\\\":\\\"13.1\\\",\\\"driver\\\":[" DRIVERS
    "]}\"\n"
    "4: .balign 4\n"
    ".popsection\n");

int cuInit(unsigned flags) {
  (void)flags;
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = 42;
  return 0;
}
