/* SPDX-License-Identifier: Apache-2.0
 *
 * dlopen and dlsym under the version they have had since glibc 2.2.5, found in libdl.so.2: the
 * version that a new glibc links by default (2.34, in libc.so.6) does not exist in older images.
 */
#ifndef GANTRY_SIM_SMI_LOADER_H
#define GANTRY_SIM_SMI_LOADER_H

#include <dlfcn.h>

#if defined(__x86_64__) && defined(GANTRY_OLD_GLIBC)
__asm__(".symver dlopen, dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
#endif

#endif
