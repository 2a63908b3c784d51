// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: which function a name means for a program built against a given CUDA version.
#include "sim/libcuda/driver.hpp"
#include "sim/libcuda/entries.hpp"

#include <string.h>
#include <unistd.h>

#define CUDA_ENTRY(symbol, name, since, parameters, arguments)
#define CUDA_ENTRY_PTSZ(symbol, name, since, parameters, arguments) \
  extern "C" CUresult symbol##_ptsz parameters;
#define CUDA_ENTRY_PTDS(symbol, name, since, parameters, arguments) \
  extern "C" CUresult symbol##_ptds parameters;
#include "gpu/abi/cuda_entries.def"

#define CUDA_UNSUPPORTED(symbol, name, since) extern "C" CUresult symbol();
#define CUDA_UNSUPPORTED_PTSZ(symbol, name, since) \
  extern "C" CUresult symbol();                    \
  extern "C" CUresult symbol##_ptsz();
#include "sim/libcuda/unsupported.def"

namespace gantry::sim::cuda {
namespace {

struct EntryRow {
  const char* name;
  int since;
  void* function;
  void* per_thread;  // nullptr: the same for both default streams
};

// Per-thread default streams exist since CUDA 7; a request with an older version does not find
// them.
constexpr int kPerThreadSince = 7000;

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

const EntryRow* rows(size_t& count) {
  static const EntryRow all_rows[] = {
#define CUDA_ENTRY(symbol, name, since, parameters, arguments) \
  {#name, since, address(&::symbol), nullptr},
#define CUDA_ENTRY_PTSZ(symbol, name, since, parameters, arguments) \
  {#name, since, address(&::symbol), address(&::symbol##_ptsz)},
#define CUDA_ENTRY_PTDS(symbol, name, since, parameters, arguments) \
  {#name, since, address(&::symbol), address(&::symbol##_ptds)},
#include "gpu/abi/cuda_entries.def"
#define CUDA_UNSUPPORTED(symbol, name, since) {#name, since, address(&::symbol), nullptr},
#define CUDA_UNSUPPORTED_PTSZ(symbol, name, since) \
  {#name, since, address(&::symbol), address(&::symbol##_ptsz)},
#include "sim/libcuda/unsupported.def"
      // The only name that now means a function of another name.
      {"cuGraphInstantiate", 12000, address(&::cuGraphInstantiateWithFlags), nullptr},
  };
  count = sizeof all_rows / sizeof all_rows[0];
  return all_rows;
}

// The table that the CUDA runtime asks for before anything else.
constexpr unsigned char kRuntimeTable[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                             0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};

// Says once in each process why the runtime does not start. Called with the driver's lock.
void explain_runtime() {
  static bool explained = false;
  if (explained) return;
  explained = true;
  constexpr char kText[] =
      "gantry: this GPU is simulated. NVIDIA's CUDA runtime (libcudart) works only with NVIDIA's "
      "own "
      "driver; programs that use the driver API (libcuda) run. See docs/simulated-machines.md\n";
  // Nothing can be done if stderr is closed.
  if (write(STDERR_FILENO, kText, sizeof kText - 1) < 0) return;
}

CUdriverProcAddressQueryResult look_up(const char* name, int version, cuuint64_t flags,
                                       void** function) {
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  size_t count = 0;
  const EntryRow* all = rows(count);
  const EntryRow* best = nullptr;
  bool known = false;
  for (const EntryRow* row = all; row != all + count; ++row) {
    if (strcmp(row->name, name) != 0) continue;
    known = true;
    const int since = per_thread && row->per_thread != nullptr && row->since < kPerThreadSince
                          ? kPerThreadSince
                          : row->since;
    if (since <= version && (best == nullptr || row->since > best->since)) best = row;
  }
  if (!known) return CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (best == nullptr) return CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  *function = per_thread && best->per_thread != nullptr ? best->per_thread : best->function;
  return CU_GET_PROC_ADDRESS_SUCCESS;
}

bool valid_request(const char* symbol, void** function, int version, cuuint64_t flags) {
  constexpr cuuint64_t kKnown =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  const auto* image = gantry_sim_image();
  const int newest =
      image == nullptr ? GANTRY_CUDA_ABI : static_cast<int>(image->machine.cuda_version);
  return symbol != nullptr && function != nullptr && (flags & ~kKnown) == 0 && version <= newest;
}

}  // namespace

namespace entry {

CUresult cuGetProcAddress(const char* symbol, void** function, int cuda_version, cuuint64_t flags) {
  if (!valid_request(symbol, function, cuda_version, flags)) return CUDA_ERROR_INVALID_VALUE;
  void* found = nullptr;
  if (look_up(symbol, cuda_version, flags, &found) != CU_GET_PROC_ADDRESS_SUCCESS)
    return CUDA_ERROR_NOT_FOUND;
  *function = found;
  return CUDA_SUCCESS;
}

// The second version succeeds in any case; the result is in the status.
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version,
                             cuuint64_t flags, CUdriverProcAddressQueryResult* symbol_status) {
  if (!valid_request(symbol, function, cuda_version, flags)) return CUDA_ERROR_INVALID_VALUE;
  *function = nullptr;
  const CUdriverProcAddressQueryResult status = look_up(symbol, cuda_version, flags, function);
  if (symbol_status != nullptr) *symbol_status = status;
  return CUDA_SUCCESS;
}

// The private tables between the vendor's own libraries: we have none. NVIDIA's CUDA runtime needs
// some, and then a proof that the driver is NVIDIA's (decision 38), so it reports error 500.
CUresult cuGetExportTable(const void** export_table, const CUuuid* export_table_id) {
  if (export_table == nullptr || export_table_id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *export_table = nullptr;
  if (memcmp(export_table_id->bytes, kRuntimeTable, sizeof kRuntimeTable) == 0) explain_runtime();
  return CUDA_ERROR_NOT_FOUND;
}

}  // namespace entry
}  // namespace gantry::sim::cuda
