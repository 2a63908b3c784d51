/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into static programs. OpenSSL can load providers from files and look up host names. A
 * static program must do neither: both would load shared libraries, and with them a second C
 * library. We call none of the functions of OpenSSL that do, and with these definitions the linker
 * takes none of glibc's. src/net/dns finds addresses.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stddef.h>

void* dlopen(const char* file, int mode) {
  (void)file;
  (void)mode;
  return NULL;
}

void* dlsym(void* restrict handle, const char* restrict name) {
  (void)handle;
  (void)name;
  return NULL;
}

int dlclose(void* handle) {
  (void)handle;
  return -1;
}

char* dlerror(void) {
  static char why[] = "a static program loads no libraries";
  return why;
}

int dladdr(const void* address, Dl_info* found) {
  (void)address;
  (void)found;
  return 0;
}

struct hostent* gethostbyname(const char* name) {
  (void)name;
  errno = ENOSYS;
  return NULL;
}

int getaddrinfo(const char* restrict name, const char* restrict service,
                const struct addrinfo* restrict hints, struct addrinfo** restrict found) {
  (void)name;
  (void)service;
  (void)hints;
  *found = NULL;
  return EAI_FAIL;
}

void freeaddrinfo(struct addrinfo* list) {
  (void)list;
}

const char* gai_strerror(int code) {
  (void)code;
  return "a static program has no name service";
}

int getnameinfo(const struct sockaddr* restrict address, socklen_t size, char* restrict host,
                socklen_t host_size, char* restrict service, socklen_t service_size, int flags) {
  (void)address;
  (void)size;
  (void)host;
  (void)host_size;
  (void)service;
  (void)service_size;
  (void)flags;
  return EAI_FAIL;
}
