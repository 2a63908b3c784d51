/* SPDX-License-Identifier: Apache-2.0
 *
 * Just enough of both libraries for the loaders' tests. Without WHOLE one function of each is
 * absent. */
// NOLINTBEGIN(readability-identifier-naming): the vendor's names
int nvmlInit_v2(void) {
  return 9;
}
int nvmlShutdown(void) {
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  return version && length ? 0 : 2;
}
int nvmlDeviceGetCount_v2(unsigned int* count) {
  return *count = 3, 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  return *device = 0, index ? 2 : 0;
}
int nvmlDeviceGetName(void* device, char* name, unsigned int length) {
  return device && name && length ? 0 : 2;
}
int cuInit(unsigned int flags) {
  return flags ? 1 : 0;
}
int cuDriverGetVersion(int* version) {
  return *version = 13000, 0;
}
int cuDeviceGet(int* device, int ordinal) {
  return *device = ordinal, 0;
}
#ifdef WHOLE
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned int length) {
  return device && uuid && length ? 0 : 2;
}
int cuDeviceGetCount(int* count) {
  return *count = 2, 0;
}
#endif
// NOLINTEND(readability-identifier-naming)
