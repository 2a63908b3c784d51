/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What QEMU's configure would find on an amd64 Debian 12, as far as its headers ask for it. It
 * saves a run of configure. */
#pragma once
#define QEMU_VERSION "7.2"
#define HOST_X86_64 1
#define CONFIG_ATOMIC64
#define CONFIG_INT128
#define CONFIG_IOVEC
#define CONFIG_LINUX
#define CONFIG_MADVISE
#define CONFIG_POSIX
#define CONFIG_POSIX_MADVISE
#define CONFIG_STRCHRNUL
#define CONFIG_SYSMACROS
#define CONFIG_TCG 1
#define HAVE_STRUCT_STAT_ST_ATIM
