/* SPDX-License-Identifier: Apache-2.0
 *
 * Linked against, never installed: tells the linker that dlopen and dlsym live in libdl.so.2 under
 * GLIBC_2.2.5, as they did before glibc 2.34. See loader.h.
 */
void* dlopen(const char* file, int mode);
void* dlsym(void* handle, const char* name);

void* dlopen(const char* file, int mode) {
  return mode ? (void*)file : 0;
}
void* dlsym(void* handle, const char* name) {
  return name ? handle : 0;
}
