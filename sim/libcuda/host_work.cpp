// SPDX-License-Identifier: Apache-2.0
#include "sim/libcuda/host_work.hpp"

#include "sim/libcuda/clock.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

// In libc since glibc 2.34, before that in a library that the program may not have.
#if defined(__x86_64__)
__asm__(".symver pthread_create,pthread_create@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver pthread_create,pthread_create@GLIBC_2.17");
#endif
#pragma weak pthread_create

namespace gantry::sim::cuda {
namespace {

struct Item {
  Item* next;
  HostWork work;
  const Device* device;
  uint64_t when_ns;
  uint64_t number;
};

// Protected by the driver's lock, except the two futex words.
struct Queue {
  Item* first = nullptr;
  Item* last = nullptr;
  uint64_t put = 0;
  uint64_t done = 0;
  uint32_t put_word = 0;
  uint32_t done_word = 0;
  int32_t thread = 0;  // its number
  bool started = false;
};
constinit Queue queue{};

void wait_on(const uint32_t* word, uint32_t seen) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void change(uint32_t* word) {
  __atomic_add_fetch(word, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 0x7fffffff, nullptr, nullptr, 0);
}

void call(const HostWork& work) {
  if (work.function != nullptr) {
    work.function(work.data);
  } else {
    work.callback(work.stream, CUDA_SUCCESS, work.data);
  }
}

// Called with the lock.
Item* take() {
  Item* item = queue.first;
  if (item == nullptr) return nullptr;
  queue.first = item->next;
  if (queue.first == nullptr) queue.last = nullptr;
  return item;
}

void run_next() {
  const uint32_t seen = __atomic_load_n(&queue.put_word, __ATOMIC_ACQUIRE);
  driver.lock.lock();
  Item* item = take();
  if (item != nullptr) wait_until(*item->device, item->when_ns);
  driver.lock.unlock();
  if (item == nullptr) {
    wait_on(&queue.put_word, seen);
    return;
  }
  call(item->work);
  driver.lock.lock();
  queue.done = item->number;
  driver.lock.unlock();
  change(&queue.done_word);
  free(item);
}

void* run_all(void*) {
  __atomic_store_n(&queue.thread, static_cast<int32_t>(syscall(SYS_gettid)), __ATOMIC_RELAXED);
  for (;;) run_next();
}

// The thread blocks all signals of the program.
bool start_thread() {
  if (queue.started) return true;
  if (pthread_create == nullptr) return false;
  const uint64_t all = ~uint64_t{0};
  uint64_t before = 0;
  pthread_attr_t detached;
  pthread_t thread;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
  queue.started = pthread_create(&thread, &detached, run_all, nullptr) == 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  pthread_attr_destroy(&detached);
  return queue.started;
}

}  // namespace

CUresult put_host_work(Stream& stream, const HostWork& work) {
  enqueue(stream, 0);
  const Device& device = *stream.context->device;
  auto* item = start_thread() ? static_cast<Item*>(calloc(1, sizeof(Item))) : nullptr;
  if (item == nullptr) {
    wait_until(device, stream.ready_ns);
    const DriverUnlock unlocked;
    call(work);
    return CUDA_SUCCESS;
  }
  *item = {nullptr, work, &device, stream.ready_ns, ++queue.put};
  stream.host_work = item->number;
  (queue.last == nullptr ? queue.first : queue.last->next) = item;
  queue.last = item;
  change(&queue.put_word);
  return CUDA_SUCCESS;
}

uint64_t host_work_before(const Stream& stream) {
  const Context& context = *stream.context;
  uint64_t number = stream.host_work;
  if (&stream != &context.legacy) {
    const bool blocking = (stream.flags & CU_STREAM_NON_BLOCKING) == 0;
    return blocking ? later(number, context.legacy.host_work) : number;
  }
  size_t cursor = 0;
  while (Object* object = next_of(&context, Kind::Stream, cursor)) {
    const auto* other = static_cast<const Stream*>(object);
    if ((other->flags & CU_STREAM_NON_BLOCKING) == 0) number = later(number, other->host_work);
  }
  return number;
}

uint64_t host_work_of(const Context& context) {
  uint64_t number = context.legacy.host_work;
  size_t cursor = 0;
  while (Object* object = next_of(&context, Kind::Stream, cursor))
    number = later(number, static_cast<const Stream*>(object)->host_work);
  return number;
}

bool host_work_done(uint64_t number) {
  return queue.done >= number;
}

void wait_for_host_work(uint64_t number) {
  while (!host_work_done(number)) {
    const uint32_t seen = __atomic_load_n(&queue.done_word, __ATOMIC_ACQUIRE);
    const DriverUnlock unlocked;
    wait_on(&queue.done_word, seen);
  }
}

bool on_host_work_thread() {
  const int32_t thread = __atomic_load_n(&queue.thread, __ATOMIC_RELAXED);
  return thread != 0 && thread == static_cast<int32_t>(syscall(SYS_gettid));
}

}  // namespace gantry::sim::cuda
