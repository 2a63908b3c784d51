// SPDX-License-Identifier: Apache-2.0
// The objects behind CUDA's handles: contexts, streams, modules... Every handle is the address of
// one of these, and is looked up before it is used.
#pragma once

#include "gpu/abi/cuda.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

namespace gantry::sim::cuda {

struct Device;
struct Context;

enum class Kind : uint8_t {
  Context,
  Stream,
  Event,
  Module,
  Function,
  Library,
  Pool,
  Array,
  Mipmap,
  Memory,
  Graph,
  Node,
  GraphExec,
  Capture,
};

struct Object {
  Kind kind;
  Context* context;  // ends with it; nullptr: belongs to the process
};

struct Node;

// The nodes on which the next work of a capturing stream depends.
struct Tail {
  Node** node;
  uint32_t count;
};

// The streams that record their work into one graph, beginning with the stream where the capture
// began.
struct Capture;

struct Stream : Object {
  static constexpr Kind kKind = Kind::Stream;
  uint32_t flags;
  int priority;
  uint64_t id;
  uint64_t ready_ns;   // when the work enqueued so far ends, on the simulated clock
  uint64_t host_work;  // the last host function in it (host_work.hpp)
  int32_t thread;      // of a per-thread default stream
  Capture* capture;    // nullptr: work is done
  Tail tail;
};

struct Context : Object {
  static constexpr Kind kKind = Kind::Context;
  Device* device;
  uint32_t flags;
  uint32_t uses;  // cuCtxAttach
  bool primary;
  uint64_t id;
  uint64_t limit[8];
  CUfunc_cache cache;
  CUsharedconfig shared;
  Stream legacy;   // the default stream
  uint64_t peers;  // bit per device made accessible
};

struct Event : Object {
  static constexpr Kind kKind = Kind::Event;
  uint32_t flags;
  bool recorded;
  uint64_t when_ns;
  uint64_t host_work;  // must run before
  uint64_t capture;    // number of the capture it was last recorded in; 0: none
  Tail tail;
};

struct Module;

struct Function : Object {
  static constexpr Kind kKind = Kind::Function;
  Module* module;
  char* name;
  CUfunc_cache cache;
  int dynamic_shared;  // at most, in bytes
  int carveout;
  unsigned block[3];  // cuFuncSetBlockShape and its kin
  unsigned shared_bytes;
  char* arguments;
  uint32_t argument_size, argument_room;
};

// A library of CUDA 12 is a module that knows no context until it is used; a CUkernel is its
// Function.
struct Module : Object {
  static constexpr Kind kKind = Kind::Module;
  bool library;
  bool opaque;     // machine code: any name may be in it
  int ptx_target;  // 52 of "sm_52"
  char* names;     // of the kernels, each ended by NUL
  uint32_t name_count;
  Function** functions;  // created on request
  uint32_t function_count;
};

struct Pool : Object {
  static constexpr Kind kKind = Kind::Pool;
  Device* device;
  uint64_t threshold, reserved, reserved_high, used, used_high, max_bytes;
  int reuse[4];
  uint32_t handle_types;
  bool imported;       // owned by another process
  uint64_t shared_id;  // 0: not shared
  int file;            // the descriptor to send, if shared_id is ours
};

// Physical memory of cuMemCreate: lives until it is released and no longer mapped.
struct Memory : Object {
  static constexpr Kind kKind = Kind::Memory;
  CUmemAllocationProp prop;
  Device* device;  // nullptr: host memory, free of charge
  size_t size;
  char* data;
  uint32_t handles, mappings;
};

struct Block;
struct Array : Object {
  static constexpr Kind kKind = Kind::Array;
  CUDA_ARRAY3D_DESCRIPTOR shape;
  size_t element, row, size;  // bytes
  char* data;
  Block* memory;  // what the card gives for it; nullptr: that of the mipmap's first level
  bool level;     // of a mipmap, which owns the memory
};

struct Mipmap : Object {
  static constexpr Kind kKind = Kind::Mipmap;
  uint32_t count;
  Array* level[32];
};

// The live handles.
bool remember(Object* object);
void forget(Object* object);
bool is_live(const void* handle, Kind kind);
// Walks the live objects of one kind; `cursor` starts at 0. nullptr at the end. Objects may be
// removed on the way, not added.
Object* next_of(const Context* context, Kind kind, size_t& cursor);

// Creates a zeroed object and registers it; nullptr if there is no memory.
template <class T>
T* make(Context* context) {
  auto* object = static_cast<T*>(calloc(1, sizeof(T)));
  if (object == nullptr) return nullptr;
  object->kind = T::kKind;
  object->context = context;
  if (remember(object)) return object;
  free(object);
  return nullptr;
}

inline void destroy(Object* object) {
  forget(object);
  free(object);
}

// The object of a program's handle; nullptr if the handle was never given out or was destroyed.
template <class T, class Handle>
T* find(Handle handle) {
  auto* object = reinterpret_cast<T*>(handle);
  return object != nullptr && is_live(object, T::kKind) ? object : nullptr;
}

template <class Handle, class T>
Handle handle_of(T* object) {
  return reinterpret_cast<Handle>(object);
}

}  // namespace gantry::sim::cuda
