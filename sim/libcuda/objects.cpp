// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/objects.hpp"

namespace gantry::sim::cuda {
namespace {

// Open addressing; a removed entry leaves a mark so that searches continue after it.
struct Table {
  Object** slot;
  size_t capacity;  // power of two
  size_t filled;    // live and removed
};
constinit Table table{};
constinit Object removed{};

size_t place(const void* object, size_t capacity) {
  const uint64_t mixed = (reinterpret_cast<uint64_t>(object) >> 4U) * 0x9e3779b97f4a7c15ULL;
  return static_cast<size_t>(mixed >> 20U) & (capacity - 1);
}

void insert(Table& into, Object* object) {
  size_t at = place(object, into.capacity);
  while (into.slot[at] != nullptr) at = (at + 1) & (into.capacity - 1);
  into.slot[at] = object;
  ++into.filled;
}

bool grow() {
  size_t live = 0;
  for (size_t i = 0; i < table.capacity; ++i) {
    if (table.slot[i] != nullptr && table.slot[i] != &removed) ++live;
  }
  Table bigger{};
  bigger.capacity = 64;
  while (bigger.capacity < live * 4) bigger.capacity *= 2;
  bigger.slot = static_cast<Object**>(calloc(bigger.capacity, sizeof(Object*)));
  if (bigger.slot == nullptr) return false;
  for (size_t i = 0; i < table.capacity; ++i) {
    if (table.slot[i] != nullptr && table.slot[i] != &removed) insert(bigger, table.slot[i]);
  }
  free(table.slot);
  table = bigger;
  return true;
}

Object** slot_of(const void* object) {
  if (table.capacity == 0) return nullptr;
  size_t at = place(object, table.capacity);
  while (table.slot[at] != nullptr) {
    if (table.slot[at] == object) return &table.slot[at];
    at = (at + 1) & (table.capacity - 1);
  }
  return nullptr;
}

}  // namespace

bool remember(Object* object) {
  if ((table.filled + 1) * 2 > table.capacity && !grow()) return false;
  insert(table, object);
  return true;
}

void forget(Object* object) {
  if (Object** slot = slot_of(object)) *slot = &removed;
}

bool is_live(const void* handle, Kind kind) {
  Object** slot = slot_of(handle);
  return slot != nullptr && (*slot)->kind == kind;
}

Object* next_of(const Context* context, Kind kind, size_t& cursor) {
  while (cursor < table.capacity) {
    Object* object = table.slot[cursor++];
    if (object == nullptr || object == &removed) continue;
    if (object->context == context && object->kind == kind) return object;
  }
  return nullptr;
}

}  // namespace gantry::sim::cuda
