// SPDX-License-Identifier: Apache-2.0
//
// The program's entry, instead of the C library's crt1.o: crt1.o needs __libc_start_main of glibc
// 2.34, but this program also runs in images with glibc 2.17. The old version of the symbol is
// still exported by every later glibc. No constructors are run before 2.34 (init is null), and none
// exist.
#if !defined(__x86_64__)
#error "the entry is written for x86-64"
#endif

extern "C" int main(int argc, char** argv);

__asm__(
    ".symver __libc_start_main, __libc_start_main@GLIBC_2.2.5\n"
    ".text\n"
    ".globl _start\n"
    ".type _start, @function\n"
    "_start:\n"
    ".cfi_startproc\n"
    ".cfi_undefined rip\n"
    "  xorl %ebp, %ebp\n"
    "  movq %rdx, %r9\n"   // the loader's finaliser
    "  popq %rsi\n"        // argc
    "  movq %rsp, %rdx\n"  // argv
    "  andq $-16, %rsp\n"
    "  pushq %rax\n"
    "  pushq %rsp\n"
    "  xorl %r8d, %r8d\n"
    "  xorl %ecx, %ecx\n"
    "  leaq main(%rip), %rdi\n"
    "  call *__libc_start_main@GOTPCREL(%rip)\n"
    "  hlt\n"
    ".cfi_endproc\n"
    ".size _start, . - _start\n"
    ".section .note.GNU-stack, \"\", @progbits\n"
    ".text\n");
